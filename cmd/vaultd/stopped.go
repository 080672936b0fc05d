package main

import (
	"os"
	"strings"

	"vaultd/internal/present"
)

// scanAtMost bounds what a command reads of a drop folder to say how much waits in it.
const scanAtMost = 10_000

// needToStart says that documents wait in the drop folders or half-way, and vaultd does not run. When nothing waits it is no
// need, so that a machine on which "run --once" works by a timer is not called sick between two runs.
func (v view) needToStart(open int) (n present.Need, isNeeded bool) {
	if v.state != nil { // the drop folders of a running daemon are not touched here: a share may hang
		return present.Need{}, false
	}
	dropped := 0
	for _, d := range v.cfg.Drops {
		dropped += countFolders(d.Path)
	}
	total := dropped + open
	if total == 0 {
		return present.Need{}, false
	}
	return present.Need{
		What: "not-running", Count: total,
		Text: "vaultd is not running, and " + present.FormatCount(total, "folder waits", "folders wait") + " (" + present.FormatCount(dropped, "lies", "lie") + " in drop folders, " + present.FormatCount(open, "is", "are") + " half-way)",
		Do:   "systemctl start vaultd; if it does not stay: journalctl -u vaultd",
	}, true
}

// countFolders counts the folders that people put into a drop. It is 0 when the drop cannot be read; check reports that.
func countFolders(path string) (n int) {
	d, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer d.Close()
	for seen := 0; seen < scanAtMost; {
		entries, err := d.ReadDir(500)
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(e.Name(), "_") {
				n++
			}
		}
		seen += len(entries)
		if err != nil { // io.EOF too: what was seen counts
			return n
		}
	}
	return n
}
