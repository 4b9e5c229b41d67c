"""The local world: the built template deployed into an emulator, connected to the ECS simulator. Imports ecs."""
