"""What `zcore demo` is made of: its data, its folder, what it measures, and what it draws."""
