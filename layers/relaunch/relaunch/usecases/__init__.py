"""What Relaunch does: load, decide, save, act; one public function per file."""
