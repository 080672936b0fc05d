package vaultapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// The limits of one walk. A service whose pages never end must neither keep the walk running nor fill the memory.
const (
	mostPages     = 200_000
	mostRecords   = 10_000_000 // each costs some thirty bytes
	mostIdlePages = 20         // in a row, without a new document
)

// indexWalk is one walk through the index of a vault. It decides which page comes next, when the walk ends, and whether it is
// complete. It makes no call: the caller reads the page at nextCursor and gives it to addPage.
//
// A walk is complete when the number of documents read, each counted once,
// reaches the largest `found` of a page. A `found` that shrinks does not count:
// documents that leave the index during the walk may move others to pages that
// were already read. Services mean different things by `found`: the whole
// index, the page, or what was read so far. So it counts only on a page that is
// shorter than one before it, on a last page, or when the next page brings
// nothing new. If `found` is missing, or is smaller than what was read, only an
// empty page completes the walk.
type indexWalk struct {
	next    string                    // cursor of the next page
	cursors archive.DigestSet[string] // every cursor that was asked for
	records archive.RemoteSet         // what identifies each document
	ahead   bool                      // a page told of more documents than were read: found is no count of what was read
	longest int                       // documents of the longest page
	pages   int
	idle    int // pages since the last new document
	ended   bool
	result  archive.IndexResult
}

// newIndexWalk returns a walk that begins with [FirstPage].
func newIndexWalk() *indexWalk {
	w := &indexWalk{cursors: archive.DigestSet[string]{}, records: archive.RemoteSet{}, result: archive.IndexResult{Found: -1}}
	w.goTo(FirstPage)
	return w
}

// IndexPages reads the pages of an index. *Client implements it.
type IndexPages interface {
	Index(ctx context.Context, v archive.VaultID, cursor string, size int, sort string) (Page, error)
}

// WalkIndex reads the index of a vault to its end, oldest first, so that documents archived meanwhile come last. each gets the
// documents of a page that no page before had. What is read may be used even if the walk does not reach the end of the index.
// What is missing proves something only where the result is complete. shown are the bumIds of all documents. The error is that
// of a page that could not be read, or of each.
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

// largestPage is the largest page that the service gives.
const largestPage = 1000

// nextCursor returns the cursor of the page to read next. ok is false once the walk has ended.
func (w *indexWalk) nextCursor() (cursor string, ok bool) { return w.next, !w.ended }

// addPage adds the page that was read at nextCursor. It returns the documents that no page before had.
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
	reached, repeated := r.Read == r.Found, w.cursors.Has(p.Cursor)
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

// endsWith reports whether a failed call is the end of the walk: `found` was reached, and some services answer with an error when
// they are asked for a page after the last one. Transient errors and missing rights end no walk.
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
	w.cursors.Add(cursor)
}

// endWalk ends the walk. why says what is missing; empty: the walk is complete.
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
