"""The `relaunch` command: `commands` has one module per subcommand, `views` what they print, `aws` what asks AWS."""
