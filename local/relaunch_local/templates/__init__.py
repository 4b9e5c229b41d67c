"""CloudFormation's templates: read from files, resolved with parameters, and the policies of their roles."""
