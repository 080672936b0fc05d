package page

import (
	"context"
	"encoding/binary"
	"html"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/web"
)

// manyHits finds so many documents, the newest first, and one that is not taken.
type manyHits struct {
	oneDocument
	keys []archive.Key
}

func (s manyHits) Search(_ context.Context, words []string, after archive.Key, limit int) (f Found, err error) {
	keys := s.keys
	if after.IsZero() {
		f.NotTaken = []present.NotTakenItem{{Folder: "waits", Drop: "acme"}}
	} else {
		keys = keys[slices.Index(keys, after)+1:]
	}
	f.HasMore = len(keys) > limit
	for _, k := range keys[:min(len(keys), limit)] {
		f.Hits = append(f.Hits, Hit{Entry: ledger.Entry{Key: k, Folder: words[0]}})
	}
	return f, nil
}

var (
	documentLink = regexp.MustCompile(`href="/document/([0-9a-z]+)"`)
	nextLink     = regexp.MustCompile(`rel="next" href="([^"]+)"`)
	waiting      = regexp.MustCompile(`>waits<`)
)

// The pages of a search, each behind the link of the one before, show every document once and in order; the words stay as they were
// written. What is not taken stands on the first one alone.
func TestSearch_PagesAreTheWhole(t *testing.T) {
	for _, documents := range []int{0, 1, mostHits, mostHits + 1, 3*mostHits - 1} {
		var s manyHits
		for i := range documents {
			k := archive.NewKey(time.Date(2026, 11, 20, 0, 0, documents-i, 0, time.UTC))
			binary.BigEndian.PutUint16(k[14:], uint16(i))
			s.keys = append(s.keys, k)
		}
		pages := New(s, slog.New(slog.DiscardHandler))
		var got []archive.Key
		n := 0
		for path := "/search?q=M%C3%BCller+%26+%22S%C3%B6hne%22+%2B"; path != ""; n++ {
			body := visit(t, pages, web.Rights{Read: true}, "de", http.MethodGet, path).Body.String()
			for _, m := range documentLink.FindAllStringSubmatch(body, -1) {
				k := kit.Value(archive.ParseKey(m[1]))(t)
				got = append(got, k)
			}
			waits := waiting.MatchString(body)
			kit.Check(t, waits == (n == 0), "page %d of %d documents tells what is not taken: %v", n, documents, waits)
			path = ""
			if m := nextLink.FindStringSubmatch(body); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		if want := max(1, (documents+mostHits-1)/mostHits); !slices.Equal(got, s.keys) || n != want {
			t.Errorf("%d documents: %d on %d pages, want %d pages", documents, len(got), n, want)
		}
	}
	pages := New(manyHits{}, slog.New(slog.DiscardHandler))
	w := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/search?q=x&after=nothing")
	kit.Check(t, w.Code == http.StatusNotFound, "a key that is none: %d", w.Code)
}

// foundSource finds what a test gives it.
type foundSource struct {
	oneDocument
	hits []Hit
}

func (s foundSource) Search(context.Context, []string, archive.Key, int) (Found, error) {
	return Found{Hits: s.hits}, nil
}

// What is not known of a hit is an empty cell, without a space or an element in it: the style sheet hides such a cell on a phone. A number that people
// write stays on one line; one that is too long for a phone does not.
func TestSearch_CellsOfAHit(t *testing.T) {
	hit := func(number, sender string) Hit {
		return Hit{Entry: ledger.Entry{Key: archive.NewKey(time.Now()), Folder: "Huber 88", State: ledger.Rejected}, AsRead: archive.AsRead{Number: number, SenderName: sender, Type: "Invoice"}}
	}
	long := strings.Repeat("RE-", 20)
	pages := New(foundSource{hits: []Hit{hit("", ""), hit("RE-2026-2365", "Huber & Sohn"), hit(long, "")}}, slog.New(slog.DiscardHandler))
	body := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/search?q=88").Body.String()
	for want, times := range map[string]int{
		`<td data-name="Number" class="nowrap"></td>`: 1, `<td data-name="Sender"></td>`: 2, `<td data-name="Recipient"></td>`: 3, `<td data-name="Amount" class="number"></td>`: 3,
		`<td data-name="Number" class="nowrap"><bdi>RE-2026-2365</bdi></td>`: 1, `<td data-name="Number"><bdi>` + long + `</bdi></td>`: 1, `<td data-name="Sender"><bdi>Huber &amp; Sohn</bdi></td>`: 1,
	} {
		n := strings.Count(body, want)
		kit.Check(t, n == times, "%s is there %d times, not %d:\n%s", want, n, times, body)
	}
}
