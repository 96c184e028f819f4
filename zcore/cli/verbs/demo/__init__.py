"""The verb `demo`: its data, its folder, its measurements, its picture and its page."""
