"""The jobs table: one module per kind of item, and the store over them. Imports ports and the core."""
