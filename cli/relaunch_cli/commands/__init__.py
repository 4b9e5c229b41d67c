"""One module per subcommand: its arguments, and what it calls. Imports everything else of the command."""
