package vaultapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// The bounds of one walk. A service whose pages never end must not keep the walk, or fill the memory.
const (
	mostPages     = 200_000
	mostRecords   = 10_000_000 // each costs some thirty bytes
	mostIdlePages = 20         // in a row, without a new document
)

// indexWalk is one walk through the index of a vault. It decides which page comes next, when the walk ends, and whether
// the walk is complete. It calls nobody: the caller reads the page at [indexWalk.Next] and gives it to [indexWalk.Add].
//
// A walk is complete when the documents that were read, each counted once, reach the largest `found` that a page told.
// (Documents that leave the index during the walk may move others to pages that were read already. So a `found` that
// shrinks does not count.) `found` may be the number of the page, or of what was read so far. So it counts only on a page
// that is shorter than one before it, on a page behind which there is none, or when the page behind it brings nothing.
// Where `found` is not told, or is smaller than what was read, only an empty page completes the walk.
type indexWalk struct {
	next    string            // cursor of the next page
	cursors archive.RemoteSet // every cursor that was asked for
	records archive.RemoteSet // what identifies each document
	ahead   bool              // a page told of more documents than were read: found is no count of what was read
	longest int               // documents of the longest page
	pages   int
	idle    int // pages since the last new document
	ended   bool
	result  archive.IndexResult
}

// newIndexWalk returns a walk that begins with [FirstPage].
func newIndexWalk() *indexWalk {
	w := &indexWalk{cursors: archive.RemoteSet{}, records: archive.RemoteSet{}, result: archive.IndexResult{Found: -1}}
	w.goTo(FirstPage)
	return w
}

// IndexPages gives the pages of an index. *Client is one.
type IndexPages interface {
	Index(ctx context.Context, v archive.VaultID, cursor string, size int, sort string) (Page, error)
}

// WalkIndex reads the index of a vault to its end, oldest first: what is archived meanwhile comes last. each gets the
// documents of a page that no page before it had. What they say may be used whether or not the walk comes to the end of the
// index; what they leave out says something only where the result is complete. shown are the bumIds of all documents. The
// error is that of a page that could not be read, or of each.
func WalkIndex(ctx context.Context, s IndexPages, v archive.VaultID, each func([]archive.IndexRecord) error) (result archive.IndexResult, shown archive.RemoteSet, err error) {
	w := newIndexWalk()
	for cursor, more := w.nextCursor(); more; cursor, more = w.nextCursor() {
		page, err := s.Index(ctx, v, cursor, largestPage, oldestFirst)
		switch {
		case err == nil:
			err = each(w.addPage(page))
		case w.endsWith(err):
			err = nil
		}
		if err != nil {
			return w.result, w.records, err
		}
	}
	return w.result, w.records, nil
}

// ReadIndex is [WalkIndex] over the pages of the client.
func (c *Client) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return WalkIndex(ctx, c, v, each)
}

// CheckIndex reads one record of the index of a vault, and reports whether the vault answers.
func (c *Client) CheckIndex(ctx context.Context, v archive.VaultID) error {
	_, err := c.Index(ctx, v, FirstPage, 1, oldestFirst)
	return err
}

const oldestFirst = "archiveDate asc"

// largestPage is the most records that the service gives in one page.
const largestPage = 1000

// nextCursor returns the cursor of the page to read next. ok is false once the walk has ended.
func (w *indexWalk) nextCursor() (cursor string, ok bool) { return w.next, !w.ended }

// addPage takes in the page that was read at the cursor that nextCursor gave. It returns those documents that no page before it had.
func (w *indexWalk) addPage(p Page) (added []archive.IndexRecord) {
	for _, rec := range p.Records {
		if w.records.Add(identityOf(rec)) {
			added = append(added, rec)
		}
	}
	w.pages++
	w.idle++
	if len(added) > 0 {
		w.idle = 0
	}
	shorter := len(p.Records) < w.longest
	w.longest = max(w.longest, len(p.Records))
	r := &w.result
	r.Read, r.Found, r.Request = len(w.records), max(r.Found, p.Found), p.Request
	w.ahead = w.ahead || r.Found > r.Read
	reached, repeated := r.Read == r.Found, w.cursors.Has(archive.RemoteID(p.Cursor))
	switch {
	case len(p.Records) == 0 && r.Read >= r.Found:
		w.endWalk("")
	case reached && (shorter && w.ahead || p.Cursor == "" || repeated || w.idle >= mostIdlePages):
		w.endWalk("")
	case p.Cursor == "":
		w.endWalk("its last page names no next page")
	case repeated:
		w.endWalk("its last page names a next page that was read before")
	case w.idle >= mostIdlePages:
		w.endWalk(fmt.Sprintf("its last %d pages brought no new document", w.idle))
	case w.pages >= mostPages || r.Read >= mostRecords:
		w.endWalk(fmt.Sprintf("it does not end: %d pages were read", w.pages))
	default:
		w.goTo(p.Cursor)
	}
	return added
}

// endsWith reports whether the walk ends with a call that failed: `found` was reached, and the service answers with an
// error where a page behind the last one was asked for. Faults that pass by themselves, and credentials, end no walk.
func (w *indexWalk) endsWith(err error) bool {
	e, ok := errors.AsType[*apicall.Error](err)
	refused := ok && strings.HasPrefix(e.Code, "http-") && e.Code != "http-504" && !e.Denied && !e.Overloaded()
	if !refused || !w.ahead && !strings.HasPrefix(e.Code, "http-4") || w.ended || w.result.Read != w.result.Found {
		return false
	}
	w.endWalk("")
	return true
}

func (w *indexWalk) goTo(cursor string) {
	w.next = cursor
	w.cursors.Add(archive.RemoteID(cursor))
}

// endWalk ends the walk. It is complete where nothing is said against that.
func (w *indexWalk) endWalk(why string) {
	w.ended, w.result.Complete, w.result.Why = true, why == "", why
}

// identityOf tells one document of an index from another. No bumId holds a space.
func identityOf(r archive.IndexRecord) archive.RemoteID {
	switch {
	case r.Remote != "":
		return r.Remote
	case r.ArchiveID != "":
		return archive.RemoteID("archiveId " + r.ArchiveID)
	}
	return archive.RemoteID("record " + string(r.Raw))
}
