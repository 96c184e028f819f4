"""Reference tables: keys whose bytes lie in other files."""
