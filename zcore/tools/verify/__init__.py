"""`zcore.verify`: a store checked whole, and repaired."""
