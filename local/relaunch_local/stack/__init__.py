"""The real template in an emulator beside the ECS simulator: built, deployed, connected."""
