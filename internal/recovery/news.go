package recovery

import (
	"fmt"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// noteContent tells an entry that the archive has content under one of its registrations that it does not count: the
// registration was given up, or nobody has asked since. The change is committed with the other pending ones. After a crash
// before that, the next comparison finds the same.
func (p *comparison) noteContent(e ledger.Entry, rc archive.Receipt) {
	if !e.IsNews(rc) || !p.notified.Add(rc.Remote) {
		return
	}
	p.report.Heard++
	i := slices.IndexFunc(e.Registrations, func(r ledger.Registration) bool { return r.Ticket.Remote == rc.Remote })
	awaited := i >= 0 && (e.Registrations[i].Fate == ledger.MaybeStored || e.Registrations[i].Fate == ledger.Stored)
	if !awaited {
		p.uncounted[e.Key] = Finding{Key: e.Key, Remote: rc.Remote, Text: fmt.Sprintf("the archive says %s; the ledger had given this bumId up, and its entry was %s", rc.Status, e.State)}
	}
	var evs []ledger.Event
	if i < 0 {
		evs = append(evs, ledger.RegistrationFound{Remote: rc.Remote, ServiceTime: rc.Date})
	}
	evs = append(evs, ledger.StatusSeen{Receipt: rc, Grace: p.Grace, NotBefore: p.Now().Wall})
	// A second change of the same revision would be refused as stale, so both become one change.
	for n := range p.pending {
		if p.pending[n].Key == e.Key {
			p.pending[n].Events = append(p.pending[n].Events, evs...)
			return
		}
	}
	p.pending = append(p.pending, ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: p.Now()})
}

// addDoubleOrUncounted reports an entry that the archive holds more than once, or of which it holds content that the entry did
// not count. A double that a person has closed is not reported again.
func (r *VaultReport) addDoubleOrUncounted(e ledger.Entry, uncounted map[archive.Key]Finding) {
	found, told := uncounted[e.Key]
	switch {
	case e.IsArchivedTwice() && !e.Resolved:
		var all []string
		for _, one := range e.Registrations {
			if n := string(one.Ticket.Remote); one.Fate == ledger.Succeeded && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		r.Double.add(Finding{Key: e.Key, Remote: e.ArchivedRemote, Text: fmt.Sprintf("archived %d times: %s", len(all), strings.Join(all, ", "))})
	case told:
		r.Uncounted.add(found)
	}
}
