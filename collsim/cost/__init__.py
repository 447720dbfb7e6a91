"""What runs cost without playing them: exact forms, the textbook's forms, and lower bounds."""
