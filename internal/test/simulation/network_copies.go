package simulation

import (
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// isCopyOwed reports whether the archive must get a copy of an entry.
func (w *World) isCopyOwed(e ledger.Entry) bool {
	return w.cfg.Network.Copies && e.Route == ledger.Network && e.State == ledger.Delivered && !e.NeedsReconcile
}

// findOwedCopies names the sent documents whose copies nothing has taken yet.
func (w *World) findOwedCopies() (left []string) {
	w.t.Helper()
	if !w.cfg.Network.Copies {
		return nil
	}
	for _, e := range w.networkEntries() {
		_, isTaken, err := w.d.Ledger().FindByID(archive.DeriveSentID(e.OwnNumber()))
		w.failOn(err)
		if w.isCopyOwed(e) && !isTaken && w.setBacks == 0 {
			left = append(left, fmt.Sprintf("of %q (%s) the archive has no copy", e.Folder, e.State))
		}
	}
	return left
}

// checkCopies holds the copies that the archive has to what was sent: each once, with every file byte for byte, and none of what was not sent. It must
// hold at every instant at which no process runs.
func (w *World) checkCopies(l *boltledger.Ledger, entries []ledger.Entry) (problems []string) {
	w.t.Helper()
	if !w.cfg.Network.Copies {
		return nil
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	has := map[string]int{}
	for _, r := range w.emulator.Registrations() {
		if !r.ArchivedAt.IsZero() && r.Archivable && !r.Late { // what the service called failed, or refused, may come true long after it went again
			has[r.ClientUUID]++
		}
	}
	sent := map[string]bool{}
	for _, d := range w.emulator.SentDocuments() {
		sent[d.BumID] = true
	}
	for _, e := range entries {
		if e.Route != ledger.Network || e.ID.IsZero() {
			continue
		}
		id := archive.DeriveSentID(e.OwnNumber())
		key, isTaken, err := l.FindByID(id)
		w.failOn(err)
		switch {
		case isTaken && !sent[string(e.OwnNumber())] && w.setBacks == 0 && !w.occupied[e.OwnNumber()]: // that somebody else has it may look like our own success
			say("I12: %q has a copy, and the network never took it", e.Folder)
		case !isTaken:
			continue
		}
		c, _, err := l.Entry(key)
		w.failOn(err)
		if has[id.String()] > 1 && !c.PossibleDouble {
			say("I2: the copy of %q is archived %d times", e.Folder, has[id.String()])
			w.logHistory(l, key)
		}
		doc, _, err := l.Document(key)
		w.failOn(err)
		if len(doc.Files) > 0 { // else it is not packed yet, or known by its receipt alone
			problems = append(problems, w.compareCopy(e, doc)...)
		}
	}
	return problems
}

// compareCopy compares the files of a copy with what was dropped and with the body that was recorded.
func (w *World) compareCopy(e ledger.Entry, copied ledger.Document) (problems []string) {
	i := slices.IndexFunc(w.dropped, func(f Dropped) bool { return w.dropName(f.Drop) == e.Drop && f.Name == e.Folder })
	if i < 0 {
		return nil // compareSent says so
	}
	hasBody, files := false, map[string]archive.Digest{}
	for _, f := range copied.Files {
		if f.Path == "sent.json" {
			if hasBody = true; f.SHA256 != e.Body && w.setBacks == 0 {
				problems = append(problems, fmt.Sprintf("I4: the copy of %q holds another body than was sent", e.Folder))
			}
			continue
		}
		files[f.Path] = f.SHA256
	}
	for name, content := range w.dropped[i].Files {
		if files[name] != archive.Sum(content) {
			problems = append(problems, fmt.Sprintf("I4: the copy of %q has %q in other bytes, or not", e.Folder, name))
		}
	}
	if len(files) != len(w.dropped[i].Files) || !hasBody && w.setBacks == 0 {
		problems = append(problems, fmt.Sprintf("I4: the copy of %q has %d files for %d, with a body: %v", e.Folder, len(files), len(w.dropped[i].Files), hasBody))
	}
	return problems
}
