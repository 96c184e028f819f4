"""How the command shows things: tables, figures, pages."""
