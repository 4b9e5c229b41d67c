"""One module per subcommand: its options, and what it calls.

Commands may import everything else of the package, but not each other.
"""
