package main

import (
	"errors"
	"fmt"

	"vaultd/internal/config"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
)

// tryMount says whether a drop folder is on a network drive, and what is lost
// there.
func tryMount(d config.Drop) []tried {
	kind, err := durable.NetworkFileSystem(d.Path)
	if err != nil || kind == "" {
		return nil
	}
	if d.Mode == "events" {
		return []tried{newWarning("mount", d.Name, "a network drive or FUSE ("+kind+"), where other machines change things without an event", "mode: auto for this drop. See docs/network-drives.md")}
	}
	return []tried{newSuccess("mount", d.Name, fmt.Sprintf("a network drive or FUSE (%s): events do not count there, and new documents are found by a look every %v", kind, d.Rescan))}
}

// tryModesForReal says whether the mount of a drop folder decides the modes,
// and whether vaultd can work with them.
func tryModesForReal(d config.Drop) (all []tried, decides bool) {
	m, err := tryModes(d)
	fault, isFault := errors.AsType[*drop.ModesError](err)
	switch {
	case isFault:
		all = append(all, newFailure("modes", d.Name, fault.Error(), fault.Advice()))
	case err != nil:
		all = append(all, newWarning("modes", d.Name, "whether chmod has an effect cannot be tried: "+err.Error(), ""))
	case m.Decide && m.Mode&0o020 != 0:
		all = append(all, newSuccess("modes", d.Name, fmt.Sprintf("the mount decides them (%04o): all of its group can change what vaultd took, as modes: mount accepts", m.Mode)))
	case m.Decide:
		all = append(all, newSuccess("modes", d.Name, fmt.Sprintf("the mount decides them (%04o): only its owner can change what vaultd took", m.Mode)))
	}
	return all, m.Decide
}

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
// Modes that the mount decides are accepted.
func tryPlaces(d config.Drop, mountDecides bool) (all []tried) {
	faults, err := drop.CheckPlaces(d.Path)
	if err != nil {
		return []tried{newWarning("drop", d.Name, "its folders for people cannot be looked at: "+err.Error(), "")}
	}
	for _, f := range faults {
		if f.IsForeign {
			all = append(all, newFailure("drop", d.Name, f.Text, f.Do))
			continue
		}
		if mountDecides {
			continue
		}
		all = append(all, newWarning("drop", d.Name, f.Text, f.Do))
	}
	return all
}
