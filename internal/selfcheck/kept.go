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

	// digestTurn is over how many days the digests of all kept files are compared.
	digestTurn = 30
)

// look is one look at the kept folders of a drop.
type look struct {
	drop   *dropwork.Drop
	began  time.Time
	since  time.Time // when the look before began; zero if missing
	away   bool      // the drop was not there for a part of it: it does not count
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
		all[d.Settings.Name] = &look{drop: d, began: c.Now().Wall, since: d.LastKeptLook().At, away: d.CheckUsable() != nil}
	}
	return all
}

// end notes the look, unless the drop was away.
func (l *look) end() {
	if !l.away && l.drop.CheckUsable() == nil {
		l.drop.NoteKeptLook(dropwork.KeptLook{At: l.began, Unread: l.unread})
	}
}

// sort tells what an error of a look means: a drop that is away says so itself.
func (l *look) sort(err error) error {
	if errors.Is(err, dropwork.ErrAway) {
		l.away = true
		return nil
	}
	return &unreadError{err}
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
// The digests of all files are compared in turn, some folders each day.
func (c *Checker) lookAtKept(ctx context.Context, l *look, e ledger.Entry, r *Result) error {
	doc, _, err := c.Ledger.Document(e.Key)
	if err != nil {
		return err
	}
	how := drop.Look{ChangedSince: l.since.Add(-lookMargin), ReadsAll: e.SourceDiffers() || isTurnOf(e.Key, l.since, l.began)}
	if l.since.IsZero() || l.since.After(l.began) { // else the first look would read the whole archive
		how.ChangedSince = l.began.Add(-lookMargin)
	}
	found, err := l.drop.LookAtKept(ctx, e, doc, how)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
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
	isNew, err := c.KeptFound(ctx, e, ledger.SourceLooked{Cause: found})
	if isNew {
		r.Kept++
	}
	return err
}

// isTurnOf reports whether the digests of an entry's files are compared by a look
// on that day: on one of thirty, or because its day passed without a look since
// the look before. A look that takes hours, or a machine that is off on some
// days, must not leave out the same folders each time.
func isTurnOf(k archive.Key, before, now time.Time) bool {
	h := fnv.New32a()
	h.Write(k[:])
	today := dayOf(now)
	passed := (today + digestTurn - int64(h.Sum32()%digestTurn)) % digestTurn // days since its last turn
	return passed == 0 || !before.IsZero() && today-passed > dayOf(before)
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
