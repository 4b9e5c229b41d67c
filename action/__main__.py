"""What action.yml runs: `python3 -I action`, so that nothing of the workflow's workspace is imported."""

from relaunch_action.run import main

if __name__ == "__main__":
    main()
