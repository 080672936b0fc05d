package apicall

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// revoking answers a revoked token with refusal, and every call below /v1/closed with 403, whatever the token. It counts
// token requests. Each answer takes a second, so that calls overlap.
type revoking struct {
	tokenServer
	refusal int
	slow    time.Duration // a token takes so long
	down    bool          // no token is given
	asked   int
	bodies  []string
}

func (s *revoking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(time.Second)
	s.mu.Lock()
	isToken := strings.HasSuffix(r.URL.Path, "/v1/tokens")
	if isToken {
		s.asked++
	} else {
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
	}
	dead := s.revoked && !isToken
	closed := strings.HasPrefix(r.URL.Path, "/v1/closed")
	down := isToken && s.down
	slow := s.slow
	s.mu.Unlock()
	if isToken {
		time.Sleep(slow)
	}
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case dead:
		w.WriteHeader(s.refusal)
	case closed:
		w.WriteHeader(http.StatusForbidden)
	default:
		s.tokenServer.ServeHTTP(w, r)
	}
}

func (s *revoking) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
}

func (s *revoking) counted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *revoking) api(t *testing.T) *API {
	t.Helper()
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(s.ServeHTTP), Auth: oauth()})
	return api
}

func closed(op string) Request {
	return Request{Op: op, Method: http.MethodPost, Path: []string{"v1", "closed", "documents"}, Body: []byte("[]")}
}

// A token that is revoked long before its time is renewed once, however many calls were under way with it, and each of
// them is repeated once, whole.
func TestOAuth_I24_RevokedTokenIsRenewedOnce(t *testing.T) {
	for _, refusal := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		kit.Bubble(t, http.StatusText(refusal), func(t *testing.T) {
			s := &revoking{tokenServer: tokenServer{life: 86400}, refusal: refusal}
			api := s.api(t)
			kit.Value(do(t, api, get("ask")))(t)
			s.revoke()
			s.bodies = nil
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					kit.Want(t, "the error of Do",
						kit.Err(api.Do(context.Background(), post("register", "[1,2,3]"))), nil)
				})
			}
			wg.Wait()
			kit.Check(t, s.asked == 2 && len(s.bodies) == 40 && !slices.ContainsFunc(s.bodies, func(b string) bool { return b != "[1,2,3]" }),
				"%d token requests, want 2; %d calls, want 40: %q", s.asked, len(s.bodies), s.bodies)
		})
	}
}

// Two revocations are both found out, the second one within minutes.
func TestOAuth_I24_RevokedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &revoking{tokenServer: tokenServer{life: 86400}, refusal: http.StatusForbidden}
		api := s.api(t)
		do(t, api, get("ask"))
		for range 2 {
			s.revoke()
			time.Sleep(replaceSoonest)
			kit.Want(t, "the error of do", kit.Err(do(t, api, post("register", "[]"))), nil)
		}
	})
}

// A 403 about rights says nothing about the token. It costs one token, and then few: no storm of token requests, and no
// call that is allowed suffers.
func TestOAuth_I23_ForbiddenIsNoStormOfTokenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &revoking{tokenServer: tokenServer{life: 86400}}
		api := s.api(t)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 60 {
					_, err := api.Do(context.Background(), closed("register"))
					if ce := failure(t, err); ce.Outcome != NotProcessed || ce.Status != http.StatusForbidden || !ce.Denied {
						t.Errorf("%v: %v, want ce.Outcome = %v, ce.Status = http.StatusForbidden, ce.Denied", ce.Outcome, ce, NotProcessed)
					}
				}
			})
		}
		for range 50 {
			wg.Go(func() {
				kit.Want(t, "the error of Do", kit.Err(api.Do(context.Background(), get("ask"))), nil)
			})
		}
		began := time.Now()
		wg.Wait()
		most := 2 + int(time.Since(began)/replaceEvery)
		kit.Check(t, s.asked <= most, "%d token requests within %v, at most %d are fine", s.asked, time.Since(began), most)
		before := s.asked
		for range 288 { // a whole day of probes
			_, err := do(t, api, closed("register"))
			failure(t, err)
			time.Sleep(5 * time.Minute)
		}
		n := s.asked - before
		kit.Check(t, n <= 100, "%d token requests in a day of probes", n)
	})
}

// While no new token is to be had, a 403 about rights does not take the live one from those who may use it.
func TestOAuth_I23_ForbiddenWhileTheTokenEndpointIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &revoking{tokenServer: tokenServer{life: 86400}, refusal: http.StatusForbidden}
		api := s.api(t)
		do(t, api, get("ask"))
		s.down = true
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := api.Do(context.Background(), closed("register"))
				if ce := failure(t, err); ce.Status != http.StatusForbidden || ce.Outcome != NotProcessed {
					t.Errorf("%v: %v, want ce.Status = http.StatusForbidden, ce.Outcome = %v", ce.Outcome, ce, NotProcessed)
				}
			})
		}
		wg.Wait()
		n := s.counted()
		kit.Check(t, n <= 1+1+repeats, "8 calls made %d token requests", n)
		kit.Want(t, "the error of do", kit.Err(do(t, api, get("ask"))), nil)
		s.down = false
		s.revoke()
		time.Sleep(replaceAgain)
		kit.Want(t, "the endpoint is back", kit.Err(do(t, api, get("ask"))), nil)
	})
}

// A token endpoint that fails is not asked anew by every call that a dead token refuses, and gives a token as soon as it works again.
func TestOAuth_I23_TokenEndpointDownIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &revoking{tokenServer: tokenServer{life: 86400}, refusal: http.StatusForbidden}
		api := s.api(t)
		do(t, api, get("ask"))
		s.down = true
		s.revoke()
		for range 600 { // one call after the other, each a second long
			do(t, api, get("ask"))
		}
		n := s.counted()
		kit.Check(t, n <= 1+200*(1+repeats), "%d token requests for 600 refused calls", n)
		s.down = false
		time.Sleep(replaceAgain)
		kit.Want(t, "the endpoint is back", kit.Err(do(t, api, get("ask"))), nil)
	})
}

// A token endpoint may be slow. A dead token is replaced all the same.
func TestOAuth_I24_RevokedWhileTokensAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &revoking{tokenServer: tokenServer{life: 86400}, refusal: http.StatusForbidden}
		api := s.api(t)
		do(t, api, get("ask"))
		s.slow = 20 * time.Second
		s.revoke()
		kit.Want(t, "the error of do", kit.Err(do(t, api, get("ask"))), nil)
	})
}

// A password that is refused is not asked for again, and the call is not repeated.
func TestBasic_ForbiddenIsNotRepeated(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		calls := 0
		srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { calls++; w.WriteHeader(status) })
		api, _ := clients(t, Config{BaseURL: srv.URL})
		_, err := do(t, api, post("register", "[]"))
		ce := failure(t, err)
		kit.Check(t, ce.Outcome == NotProcessed && calls == 1, "%d: %v after %d calls", status, ce.Outcome, calls)
	}
}

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
			kit.Check(t, string(want[name]) == string(value), "%q: %s is %q, want %q", raw, name, value, want[name])
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
	ce := failure(t, err)
	kit.Check(t, ce.Outcome == OutcomeUnknown && held.Load() == 0, "%d bytes were read: %v", held.Load(), ce)
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
