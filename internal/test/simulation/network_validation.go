package simulation

import (
	"fmt"
	"os"
	"path/filepath"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
)

// checkValidations holds the files that lie beside ended documents to what the network's check found: the right bytes beside the right document, and
// none beside another one. It holds once all was told.
func (w *World) checkValidations(entries []ledger.Entry) (problems []string) {
	w.t.Helper()
	if w.cfg.Network.Drops == 0 || w.setBacks > 0 { // what the ledger forgot it cannot tell
		return nil
	}
	named := map[string]bool{}
	for _, n := range w.emulator.Notices() {
		for _, p := range n.Properties {
			named[n.BumID] = named[n.BumID] || p.Name == "ValidationFileReference"
		}
	}
	garbled := w.fate.firedCopy()["calls network-validation-file garble"] > 0 // nobody can tell garbled text from text
	for _, e := range entries {
		if e.Route != ledger.Network || e.NeedsReconcile || e.Source != ledger.Returned && e.Source != ledger.Kept {
			continue
		}
		say := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("I4: %q (%s): ", e.Folder, e.State)+fmt.Sprintf(format, args...))
		}
		byWord := e.State == ledger.Delivered || e.Cause.Code == ledger.CauseInvalidContent && !e.Contradicted
		if byWord && named[string(e.OwnNumber())] && e.Validation != ledger.ValidationIsKept && e.Validation != ledger.ValidationMissed {
			say("the network named a file of its check, which was not asked for")
		}
		place := filepath.Join(w.dir, e.Drop, filepath.FromSlash(e.Dest))
		if !isThere(place) {
			continue // people took it away
		}
		var files []string
		for _, ending := range []string{".xml", ".pdf", ".txt"} {
			if name := filepath.Join(place, "_VALIDATION"+ending); isThere(name) {
				files = append(files, name)
			}
		}
		switch kept := e.Validation == ledger.ValidationIsKept; {
		case kept && len(files) != 1, !kept && len(files) != 0:
			say("%d files of a check lie beside it, and one should: %v", len(files), kept)
		case kept && !garbled:
			content, err := os.ReadFile(files[0])
			w.failOn(err)
			if want := emulator.ValidationFileOf(string(e.OwnNumber())); string(content) != string(want) {
				say("the file beside it is %q, and the network made %q", content, want)
			}
		}
	}
	return problems
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
