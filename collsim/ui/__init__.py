"""The pages of the app; `app.py` wires them."""
