"""The verb `demo`: its data, its folder, its measurements and its picture."""
