#!/usr/bin/env bash
# Install the browser that tests/test_report_browser.py drives, from Debian's or Ubuntu's own packages.
set -euo pipefail
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
"${as_root[@]}" apt-get update
"${as_root[@]}" apt-get install -y --no-install-recommends chromium
chromium --version
