"""The dashboard's pages: each a function from the service to blocks of plain data, which one component shows as text."""
