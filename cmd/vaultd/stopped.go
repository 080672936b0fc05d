package main

import (
	"os"
	"strings"

	"vaultd/internal/config"
	"vaultd/internal/present"
)

// scanAtMost bounds what a command reads of a drop folder to say how much waits in it.
const scanAtMost = 10_000

// needToStart says that documents wait while nobody works: in the drop folders, or half-way. Where nothing waits it is no
// need, so that a machine on which "run --once" works by a timer is not called sick between two runs.
func (s *StatusSummary) needToStart(c config.Config) (n Need, waits bool) {
	dropped := 0
	for _, d := range c.Drops {
		dropped += countFolders(d.Path)
	}
	total := dropped + s.Open.Total
	if s.Running || total == 0 {
		return Need{}, false
	}
	return Need{
		When: "now", What: "not-running", Count: total,
		Text: "vaultd is not running, and " + present.FormatCount(total, "folder waits", "folders wait") + " (" + present.FormatCount(dropped, "lies", "lie") + " in drop folders, " + present.FormatCount(s.Open.Total, "is", "are") + " half-way)",
		Do:   "systemctl start vaultd; if it does not stay: journalctl -u vaultd",
	}, true
}

// countFolders counts the folders in a drop that people put there; none where it cannot be read, which check says.
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
