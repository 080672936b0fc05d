package simulation

import (
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// truth is what the network knows about one number: the document that it has, and what it told of it.
type truth struct {
	document    *emulator.NetworkDocument
	delivered   time.Time // when it was first told that it arrived; zero: never
	undelivered time.Time // when it was first told that it does not arrive; zero: never
	recipient   bool      // it told what the recipient says
	waiting     int       // notifications that nobody acknowledged
}

// networkTruth returns what the network knows, by number.
func (w *World) networkTruth() map[archive.RemoteID]*truth {
	all := map[archive.RemoteID]*truth{}
	for _, d := range w.emulator.SentDocuments() {
		all[archive.RemoteID(d.BumID)] = &truth{document: &d}
	}
	for _, n := range w.emulator.Notices() {
		it := all[archive.RemoteID(n.BumID)]
		if it == nil {
			continue
		}
		if !n.IsAcknowledged {
			it.waiting++
		}
		told := n.At.Add(n.Late)
		switch n.ActionCode {
		case "Delivered":
			it.delivered = earliest(it.delivered, told)
		case "Undelivered", "InvalidContent":
			it.undelivered = earliest(it.undelivered, told)
		case "DocumentAccepted", "DocumentRejected":
			it.recipient = true
		}
	}
	return all
}

func earliest(had, other time.Time) time.Time {
	if had.IsZero() || other.Before(had) {
		return other
	}
	return had
}

// truthOf returns what the network knows of the present number of an entry.
func truthOf(e ledger.Entry, all map[archive.RemoteID]*truth) truth {
	number := e.OwnNumber()
	if r := e.Current(); r != nil {
		number = r.Ticket.Remote
	}
	if it := all[number]; it != nil {
		return *it
	}
	return truth{}
}

// awaitsNoNotice reports whether the network has nothing more to tell of a document that it took.
func (w *World) awaitsNoNotice(e ledger.Entry) bool {
	return e.Route == ledger.Network && e.State == ledger.Uploaded && truthOf(e, w.networkTruth()).waiting == 0
}

// findOpenNotices names the documents of the ledger of which the network still has something to tell. What it tells of a number that was found
// taken is for somebody else, and stays there.
func (w *World) findOpenNotices() (left []string) {
	w.t.Helper()
	if w.cfg.Network.Drops == 0 {
		return nil
	}
	all := w.networkTruth()
	for _, e := range w.networkEntries() {
		for _, r := range e.Registrations {
			if it := all[r.Ticket.Remote]; it != nil && it.waiting > 0 && e.IsOwnNumber(r.Ticket.Remote) {
				left = append(left, fmt.Sprintf("of %q (%s) the network has %d notifications that were not taken", e.Folder, e.State, it.waiting))
			}
		}
	}
	return left
}

// checkNotices checks that everything acknowledged at the network is in the ledger, with the document that it is about.
func (w *World) checkNotices(l *boltledger.Ledger) (problems []string) {
	w.t.Helper()
	if w.cfg.Network.Drops == 0 || w.setBacks > 0 { // what it forgot it cannot show
		return nil
	}
	kept := map[archive.AcknowledgementID]archive.Key{}
	w.failOn(l.Notices(func(n ledger.Notice) error { kept[n.ID] = n.Entry; return nil }))
	for _, n := range w.emulator.Notices() {
		if key, is := kept[archive.AcknowledgementID(n.AcknowledgementID)]; n.IsAcknowledged && !n.Announces && (!is || key.IsZero()) {
			problems = append(problems, fmt.Sprintf("I30: %s of %s was acknowledged, and is not in the ledger with its document", n.ActionCode, n.BumID))
		}
	}
	return problems
}

// checkNetwork holds the documents of the network to what it has. It must hold at every instant at which no process runs.
func (w *World) checkNetwork(l *boltledger.Ledger, entries []ledger.Entry) (problems []string) {
	w.t.Helper()
	if w.cfg.Network.Drops == 0 {
		return nil
	}
	problems = w.checkNotices(l)
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	all, of := w.networkTruth(), map[archive.RemoteID]ledger.Entry{}
	for _, e := range entries {
		for _, r := range e.Registrations {
			if e.Route == ledger.Network {
				of[r.Ticket.Remote] = e
			}
		}
	}
	sent := map[string][]emulator.NetworkDocument{} // by their data
	for _, d := range w.emulator.SentDocuments() {
		e, known := of[archive.RemoteID(d.BumID)]
		switch {
		case !known && w.setBacks == 0:
			say("I11: the network has %s, which no entry announced", d.BumID)
		case d.TimesAccepted != 1:
			say("I2: the network took %s %d times", d.BumID, d.TimesAccepted)
		}
		for _, before := range sent[d.DataSHA256] {
			dead := all[archive.RemoteID(before.BumID)].undelivered
			if isUndelivered := !dead.IsZero() && !dead.After(d.At); !isUndelivered && !e.PossibleDouble {
				say("I2: %q was sent as %s and again as %s, and the first was not known as undelivered", e.Folder, before.BumID, d.BumID)
			}
		}
		sent[d.DataSHA256] = append(sent[d.DataSHA256], d)
		if known {
			problems = append(problems, w.compareSent(e, d)...)
		}
	}
	return problems
}

// compareSent compares a document that the network has with what was dropped and recorded.
func (w *World) compareSent(e ledger.Entry, d emulator.NetworkDocument) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	// A ledger that was set back does not know under which numbers the files are stored. What it composes then has other ones.
	if r := e.Current(); r != nil && w.setBacks == 0 && string(r.Ticket.Remote) == d.BumID && d.SHA256 != e.Body.String() {
		say("I4: the network has %s of %q, recorded is %s", d.SHA256, e.Folder, e.Body)
	}
	i := slices.IndexFunc(w.dropped, func(f Dropped) bool { return w.dropName(f.Drop) == e.Drop && f.Name == e.Folder })
	if i < 0 {
		say("I1: the network has %q, which nobody dropped", e.Folder)
		return problems
	}
	if len(d.Files) != len(w.dropped[i].Files)-1 {
		say("I4: %q has %d files at the network, and was dropped with %d", e.Folder, len(d.Files), len(w.dropped[i].Files)-1)
	}
	for _, f := range d.Files {
		if f.SHA256 != archive.Sum(w.dropped[i].Files[f.Name]).String() {
			say("I4: %q of %q is at the network in other bytes", f.Name, e.Folder)
		}
	}
	return problems
}

// checkEnds holds the end of each document of the network to what the network told. It holds once all was told.
func (w *World) checkEnds(entries []ledger.Entry) (problems []string) {
	all := w.networkTruth()
	for _, e := range entries {
		if e.Route != ledger.Network || e.NeedsReconcile || w.setBacks > 0 {
			continue
		}
		it := truthOf(e, all)
		isDelivered, isUndelivered := !it.delivered.IsZero(), !it.undelivered.IsZero()
		wrong := ""
		switch e.State {
		case ledger.Delivered:
			switch {
			case !isDelivered:
				wrong = "the network never said so"
			case e.Contradicted != isUndelivered:
				wrong = "the network said later that it did not arrive, or the entry says so alone"
			case (e.Recipient != ledger.RecipientSilent) != it.recipient:
				wrong = "what the recipient said is not recorded"
			}
		case ledger.Uploaded:
			if isTaken := w.occupied[e.OwnNumber()]; isDelivered || isUndelivered || it.document == nil && !isTaken {
				wrong = "the network told its end, or does not have it"
			}
		case ledger.Rejected:
			if isDelivered && !e.Contradicted || it.document != nil && !isUndelivered && !e.InDoubt {
				wrong = "the network has it"
			}
		case ledger.Quarantined:
			if e.Cause.Code == ledger.CauseNumberTaken && !w.occupied[e.OwnNumber()] {
				wrong = "nobody else has its number"
			}
		}
		if wrong != "" {
			problems = append(problems, fmt.Sprintf("I12: %q is %s (%s), contradicted %v, in doubt %v: %s; the network says delivered %v, undelivered %v",
				e.Folder, e.State, e.Cause.Code, e.Contradicted, e.InDoubt, wrong, it.delivered, it.undelivered))
		}
	}
	return problems
}
