"""What each page shows, as values of its template."""
