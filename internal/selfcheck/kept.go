package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
)

const (
	// lookMargin is by how much the clock of a file server may be behind this
	// machine's before a change is found later, by the digest.
	lookMargin = time.Hour

	// firstSince is how far back the first look at a drop reads what changed.
	firstSince = 24 * time.Hour

	// digestTurn is over how many days the digests of all kept files are compared.
	digestTurn = 30
)

// look is one look at the kept folders of a drop.
type look struct {
	drop   *dropwork.Drop
	began  time.Time
	since  time.Time // what changed since then is read
	away   bool      // the drop was not there for a part of it: it does not count
	isPart bool      // of a kept folder nothing is known: the next look has the same since
	unread uint64
}

// beginLooks begins a look at each drop. In safe mode there is none: what the
// ledger says of the folders may be of the past.
func (c *Checker) beginLooks() map[string]*look {
	all := map[string]*look{}
	if _, safe := c.Ledger.SafeMode(); safe {
		return all
	}
	for _, d := range c.Drops {
		last := d.LastKeptScan()
		l := &look{drop: d, began: c.Now(), since: last.Since, away: d.CheckUsable() != nil}
		if l.since.IsZero() || l.since.After(l.began) { // else the first look would read the whole archive
			l.since = l.began.Add(-firstSince)
			// Noted at once: people must learn of looks that never end.
			d.NoteKeptScan(dropwork.KeptScan{At: last.At, Unread: last.Unread, Since: l.since})
		}
		all[d.Settings.Name] = l
	}
	return all
}

// end notes the look, unless the drop was away.
func (l *look) end() {
	if l.away || l.drop.CheckUsable() != nil {
		return
	}
	since := l.began
	if l.isPart {
		since = l.since
	}
	l.drop.NoteKeptScan(dropwork.KeptScan{At: l.began, Unread: l.unread, Since: since})
}

// sort tells what an error of a look means: a drop that is away says so itself.
func (l *look) sort(err error) error {
	if errors.Is(err, dropwork.ErrAway) {
		l.away = true
		return nil
	}
	l.unread++
	return &unreadError{"folder", err}
}

// lookForClaim looks whether a claimed folder is in its place.
func (l *look) lookForClaim(e ledger.Entry) (what string, err error) {
	there, err := l.drop.LookForClaim(e)
	switch {
	case err != nil:
		return "", l.sort(err)
	case there:
		return "", nil
	case e.Package.IsZero():
		return "its folder is not in .vaultd/claimed any more: it was removed or moved, and cannot be packed", nil
	}
	return "its folder is not in .vaultd/claimed any more: it was removed or moved; the package is whole, and is sent all the same", nil
}

// lookAtKept compares a kept folder with what was archived or delivered. Each look
// compares names and sizes, and reads the files that changed since the look before.
// The digests of all files are compared in turn, some folders each day. Until
// each folder could be read, the next look reads from the same time on: a folder
// that cannot be read for a while must not hide what changed in it before.
func (c *Checker) lookAtKept(ctx context.Context, l *look, e ledger.Entry, r *Result) error {
	doc, _, err := c.Ledger.Document(e.Key)
	if err != nil {
		return err
	}
	how := drop.Look{ChangedSince: l.since.Add(-lookMargin), ReadsAll: e.SourceDiffers() || isTurnOf(e.Key, l.since, l.began)}
	found, err := l.drop.LookAtKept(ctx, e, doc, how)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		l.isPart = true
		return l.sort(err)
	}
	if e.SaysOfSource(found) || c.KeptFound == nil {
		return nil
	}
	at := l.began.UTC().Format("2006-01-02 15:04 MST")
	if found.Code == "" {
		found.Text = fmt.Sprintf("The check of %s found it there again, as it was archived", at)
	} else {
		found.Text += fmt.Sprintf(". The check of %s found that", at)
	}
	// After a crash before this commit the next start checks again, at once.
	isNew, err := c.KeptFound(ctx, e, ledger.SourceChecked{Cause: found})
	if isNew {
		r.Kept++
	} else {
		l.isPart = true
	}
	return err
}

// isTurnOf reports whether the digests of an entry's files are compared by a look
// on that day: on one of thirty, or because its day passed since the last look
// that compared all folders. A look that takes hours, a machine that is off on
// some days, or a folder that cannot be read on its day must not leave out the
// same folders each time.
func isTurnOf(k archive.Key, before, now time.Time) bool {
	h := fnv.New32a()
	h.Write(k[:])
	today := dayOf(now)
	passed := (today + digestTurn - int64(h.Sum32()%digestTurn)) % digestTurn // days since its last turn
	return passed == 0 || today-passed > dayOf(before)
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
