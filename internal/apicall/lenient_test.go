package apicall

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

func TestReadFields_NamesMatchExactly(t *testing.T) {
	for name, row := range map[string]struct {
		object, want string // want: of status; empty: an error
		twice        bool
	}{
		"Plain":           {`{"status":"a","other":[{"status":"b"}]}`, `"a"`, false},
		"OtherCase":       {`{"status":"a","STATUS":"b","Status":"c"}`, `"a"`, false},
		"KelvinSign":      {`{"status":"a","\u017ftatus":"b"}`, `"a"`, false}, // encoding/json folds the long s
		"SaidTwice":       {`{"status":"a","status":"a"}`, `"a"`, false},
		"TwoValues":       {`{"status":"a","status":"b"}`, "", true},
		"OtherTwice":      {`{"status":"a","x":1,"x":2}`, `"a"`, false},
		"Null":            {`null`, "", false},
		"Array":           {`[]`, "", false},
		"Trailing":        {`{"status":"a"} x`, "", false},
		"TwoObjects":      {`{"status":"a"}{}`, "", false},
		"CutOff":          {`{"status":"a"`, "", false},
		"CutOffInAValue":  {`{"status":"a","x":[1`, "", false},
		"NoComma":         {`{"status":"a" "x":1}`, "", false},
		"SpaceEverywhere": {" \n{ \"status\" : \"a\" , \"x\":1 } \n", `"a"`, false},
	} {
		f, err := ReadFields([]byte(row.object), "status")
		if string(f["status"]) != row.want || (err == nil) != (row.want != "") || errors.Is(err, ErrTwice) != row.twice {
			t.Errorf(`%s: %s %v, want string(f["status"]) = %v, (err == nil) = %v, errors.Is(err, ErrTwice) = %v`, name, f["status"], err, row.want, (row.want != ""), row.twice)
		}
	}
	f := kit.Value(ReadFields([]byte(`{"bumid":"a","bumId":"b"}`), "bumid", "bumId"))(t)
	kit.Fails(t, "Either", kit.Err(f.Either("bumid", "bumId")), ErrTwice)
}

// Whatever stands there: only a JSON object is read, and its fields are what encoding/json takes for those of exactly that name.
func FuzzReadFields(f *testing.F) {
	for _, s := range []string{`{"status":"a","STATUS":1}`, `{"status":{"status":[]}}`, `{"a":1,"a":2}`, `[1]`, `{}`, `{"a":1}x`, "{\"\xff\":1}", `{"a":1e999}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ReadFields(raw, "status", "a")
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(raw, &want)
		kit.Need(t, err != nil || wantErr == nil && want != nil, "%q is read, and is no JSON object: %v", raw, wantErr)
		kit.Need(t, wantErr != nil || want == nil || err == nil || errors.Is(err, ErrTwice), "%q: %v", raw, err)
		for name, value := range got {
			if string(want[name]) != string(value) {
				t.Errorf("%q: %s is %q, want %q", raw, name, value, want[name])
			}
		}
	})
}

// endlessly answers with blanks, and counts what was read of all bodies together and is not released.
type endlessly struct {
	left int64
	held *atomic.Int64
}

func (b *endlessly) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), b.left)
	b.left -= n
	b.held.Add(n)
	return int(n), nil
}

func (b *endlessly) Close() error { return nil }

// However many large answers come at once, with their length told or not: together they are bounded, and all are read.
func TestDo_I21_AnswersShareABoundedMemory(t *testing.T) {
	const size = 16 << 20
	var held atomic.Int64
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		length := int64(size)
		if r.URL.Query().Has("chunked") {
			length = -1
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, ContentLength: length, Body: &endlessly{size, &held}}, nil
	})
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: transport})
	var most atomic.Int64
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			r := get("ask")
			r.Limit = size
			if i%2 == 0 {
				r.Query = map[string][]string{"chunked": {"yes"}}
			}
			ans, err := api.Do(context.Background(), r)
			if err != nil || len(ans.Body) != size {
				t.Errorf("err = %v, want no error, len(ans.Body) = %v", err, size)
				return
			}
			for now := held.Load(); ; now = held.Load() {
				if seen := most.Load(); now <= seen || most.CompareAndSwap(seen, now) {
					break
				}
			}
			held.Add(-size)
			ans.Release()
			ans.Release() // the second one changes nothing
		})
	}
	all.Wait()
	got := most.Load()
	kit.Check(t, got <= allAnswers && got != 0, "%d bytes were held at once, at most %d may be", got, allAnswers)
}

// Who finds no room waits no longer than his call may; an answer that says it is too long is not read at all.
func TestDo_I21_WaitsForRoomWithinItsTime(t *testing.T) {
	var held atomic.Int64
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, ContentLength: 1 << 20, Body: &endlessly{1 << 20, &held}}, nil
	})
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: transport, Timeout: 100 * time.Millisecond})
	kit.Must(t, api.memory.free.Acquire(t.Context(), allAnswers))
	_, err := do(t, api, post("register", "[]"))
	if ce := failure(t, err); ce.Outcome != OutcomeUnknown || held.Load() != 0 {
		t.Errorf("%d bytes were read: %v", held.Load(), ce)
	}
	api.memory.free.Release(allAnswers)
	r := post("register", "[]")
	r.Limit = 1<<20 - 1
	if _, err := do(t, api, r); !errors.Is(err, ErrTooLarge) || held.Load() != 0 {
		t.Errorf("%d bytes were read: %v", held.Load(), err)
	}
}

// A service writes its times in one of several forms; whatever it is, one moment comes of it, or none.
func TestParseTime(t *testing.T) {
	at := time.Date(2024, 3, 28, 10, 17, 2, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2024-03-28T10:17:02Z": at, "2024-03-28T11:17:02+01:00": at, "2024-03-28T10:17:02": at, "2024-03-28 10:17:02": at, "28/03/2024, 10:17:02": at,
		"28/03/2024": at.Truncate(24 * time.Hour), "2024-03-28": at.Truncate(24 * time.Hour),
		"03/28/2024, 10:17:02": {}, "28.03.2024": {}, "": {}, "yesterday": {}, "28/03/2024, 10:17:02 PM": {},
	} {
		got := ParseTime(text)
		kit.Check(t, got.Equal(want) && got.Location() == time.UTC, "%q gives %v, want %v", text, got, want)
	}
}
