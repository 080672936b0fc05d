package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// IsLoopback reports whether a host, a name or an address without a port, is this machine and nobody else can reach it.
func IsLoopback(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// ErrNotLocal says that an address can be reached from other machines, and TLS, or both users and the secret of a proxy, are missing.
var ErrNotLocal = errors.New("the address can be reached from other machines, and TLS and users (or the secret of a proxy) are not both set")

// Listen opens the port at address, which must be this machine's own unless a is guarded: ErrNotLocal.
func Listen(ctx context.Context, address string, a Access) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if !a.IsGuarded() && !IsLoopback(host) {
		return nil, fmt.Errorf("listen on %s: %w", address, ErrNotLocal)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !a.IsGuarded() && (!ok || !at.IP.IsLoopback()) { // "localhost" led elsewhere
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, ErrNotLocal), l.Close())
	}
	return l, nil
}

const (
	headerTime = 5 * time.Second
	answerTime = 30 * time.Second
	idleTime   = 5 * time.Second // less than an open page waits between two looks: else each open page would keep a connection for ever
	endTime    = 2 * time.Second // for answers under way when the server stops
	maxHeader  = 16 << 10
)

// Serve answers on l, which Listen made, until ctx ends; facts is asked for each answer. pages answers what people ask for;
// nil: there are no pages. Whoever connects to l over a Unix socket counts as the proxy of the access: the caller makes sure of that. Several
// may serve with one guard. When it returns no page is in work any more: the caller may close what they read. Its error says why it
// stopped earlier.
func Serve(ctx context.Context, l net.Listener, guard *AccessGuard, facts func() Facts, pages http.Handler, log *slog.Logger) error {
	var inWork sync.RWMutex // read-locked by each page in work
	if pages != nil {
		pages = countPages(&inWork, pages)
	}
	s := &http.Server{
		Handler: markWork(Handler(guard, facts, pages)), ConnContext: rememberConnection, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols), DisableGeneralOptionsHandler: true, // which omits the headers of [secureHeaders]
	}
	s.Protocols.SetHTTP1(true)
	l = &connections{Listener: l}
	if secure := guard.tlsConfig(); secure != nil && l.Addr().Network() != "unix" {
		l = tls.NewListener(l, secure)
	}
	var g errgroup.Group
	ended := make(chan struct{})
	// Ends when Serve has returned by itself, or shuts the server down when ctx ends; Serve waits for it below.
	g.Go(func() error {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if s.Shutdown(last) != nil { // an answer took too long: it is cut off, and the client asks again
			return s.Close()
		}
		return nil
	})
	err := s.Serve(l)
	close(ended)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	err = errors.Join(err, g.Wait())
	inWork.Lock() // for ever: those in work learn from their closed connections that nobody waits for them
	return err
}

// countPages holds a lock while a page is in work, and begins none once it is held for ever.
func countPages(inWork *sync.RWMutex, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !inWork.TryRLock() {
			http.Error(w, "vaultd is stopping", http.StatusServiceUnavailable)
			return
		}
		defer inWork.RUnlock()
		pages.ServeHTTP(w, r)
	})
}

// Handler answers /livez, /readyz (also as /healthz) and /metrics. When there are users, /metrics asks for the name and password of
// one with the right metrics, and a request without one gets only one word, ok or failing, from the health pages. A proxy names the user
// instead. When there are neither, only requests for a loopback address or localhost are answered: a web page whose own name resolves to this machine gets nothing.
//
// pages gets every other request, with its visitor in the context (see VisitorOf), GET /login among them; without pages they are 404.
// What it gets is allowed: a POST has its token and is parsed into r.PostForm, and where there are users somebody has signed in, but for
// what the sign-in page needs. A page that takes longer than answerTime extends the deadline with an http.ResponseController. It must not
// keep an answer open to stream into: few pages are in work at once.
func Handler(guard *AccessGuard, facts func() Facts, pages http.Handler) http.Handler {
	metrics := promhttp.HandlerFor(newRegistry(facts), promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	health := func(reasons func(Facts) []string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch rights, result := guard.machineRights(r); result {
			case wrongPassword, tooManyAttempts:
				refuseMachine(w, result)
			default:
				writeHealth(w, reasons(facts()), rights.Metrics)
			}
		}
	}
	ready := health(func(f Facts) []string { return append(append([]string(nil), f.Dead...), f.Unfit...) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health(func(f Facts) []string { return f.Dead }))
	mux.HandleFunc("GET /readyz", ready)
	mux.HandleFunc("GET /healthz", ready)
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		if guard.admitMachine(w, r) {
			metrics.ServeHTTP(w, r)
		}
	})
	if pages != nil {
		mux.Handle("/", newPeople(guard, pages))
	} else {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if guard.admitMachine(w, r) { // whatever else there may be is not told to strangers
				http.NotFound(w, r)
			}
		})
	}
	return secureHeaders(guard, mux)
}

// machineRights returns what a client without a session may see. If nobody is
// asked for it is everything that is for machines.
func (g *AccessGuard) machineRights(r *http.Request) (Rights, passwordResult) {
	if !g.currentAccess().AsksWho() {
		return Rights{Metrics: true}, accessGranted
	}
	if from := g.examineProxy(r); from.name != "" {
		return from.rights, accessGranted
	}
	u, result := g.checkBasic(r)
	return u.Rights, result
}

// admitMachine reports whether a client may read the metrics, and answers one that may not.
func (g *AccessGuard) admitMachine(w http.ResponseWriter, r *http.Request) bool {
	rights, result := g.machineRights(r)
	switch {
	case result != accessGranted:
		refuseMachine(w, result)
	case !rights.Metrics:
		http.Error(w, "this user has no right to see metrics; the file of users says who has", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "ask with GET", http.StatusMethodNotAllowed)
	default:
		return true
	}
	return false
}

// refuseMachine answers a client whose name and password are missing or wrong, or were not looked at.
func refuseMachine(w http.ResponseWriter, result passwordResult) {
	if result == tooManyAttempts {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many passwords are being checked; try again in a few seconds", http.StatusTooManyRequests)
		return
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="vaultd", charset="UTF-8"`)
	http.Error(w, "name and password are missing or wrong", http.StatusUnauthorized)
}

// secureHeaders sets the headers that browsers need, and refuses requests that are not for this machine.
func secureHeaders(guard *AccessGuard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=2592000") // thirty days, renewed with each answer
		}
		if !guard.currentAccess().AsksWho() && !IsLoopback(host) {
			http.Error(w, "ask for 127.0.0.1 or localhost; a proxy in front must set the Host header so", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// health is the object of the health pages.
type health struct {
	Status  string   `json:"status"` // ok or failing
	Reasons []string `json:"reasons"`
}

// writeHealth writes the answer. Only a client that may see them gets the reasons: they may name hosts and vaults.
func writeHealth(w http.ResponseWriter, reasons []string, tell bool) {
	h := health{Status: "ok", Reasons: []string{}}
	code := http.StatusOK
	if len(reasons) > 0 {
		h, code = health{Status: "failing", Reasons: reasons}, http.StatusServiceUnavailable
	}
	if !tell {
		h.Reasons = []string{}
	}
	body, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode health: %v", err)) // texts always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(body, '\n')) //lint:ignore errcheck the client went away
}
