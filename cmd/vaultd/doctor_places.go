package main

import (
	"vaultd/internal/config"
	"vaultd/internal/drop"
)

// tryOpenFiles looks how vaultd sees in a drop folder that a program still has a file open.
func tryOpenFiles(d config.Drop) tried {
	by, err := drop.OpenCheckAt(d.Path)
	switch {
	case err != nil:
		return newWarning("open-files", d.Name, "how open files are seen cannot be tried: "+err.Error(), "")
	case by == drop.ByLease:
		return newSuccess("open-files", d.Name, "the kernel tells which files are still open for writing")
	case by == drop.ByEvents:
		return newWarning("open-files", d.Name, "without CAP_LEASE only files count as open that were opened or written to after vaultd had first seen their folder; others are taken once they did not change for the settle time",
			"run vaultd by its unit, which has AmbientCapabilities=CAP_LEASE")
	}
	return newWarning("open-files", d.Name, "this file system does not tell which files are still open: they are taken once they did not change for the settle time",
		"a longer settle for this drop is safer")
}

// tryPlaces looks at the folders that vaultd makes for people in a drop folder.
func tryPlaces(d config.Drop) (all []tried) {
	faults, err := drop.CheckPlaces(d.Path)
	if err != nil {
		return []tried{newWarning("drop", d.Name, "its folders for people cannot be looked at: "+err.Error(), "")}
	}
	for _, f := range faults {
		if f.IsForeign {
			all = append(all, newFailure("drop", d.Name, f.Text, f.Do))
			continue
		}
		all = append(all, newWarning("drop", d.Name, f.Text, f.Do))
	}
	return all
}
