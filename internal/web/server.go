package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// Loopback reports whether a host, a name or an address without a port, is this machine and nobody else can reach it.
func Loopback(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// ErrNotLocal says that an address can be reached from other machines.
var ErrNotLocal = errors.New("the address can be reached from other machines, and there is no password on it")

// Listen opens the port at address, which must be this machine's own: ErrNotLocal.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if !Loopback(host) {
		return nil, fmt.Errorf("listen on %s: %w", address, ErrNotLocal)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // "localhost" led elsewhere
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, ErrNotLocal), l.Close())
	}
	return l, nil
}

const (
	headerTime = 5 * time.Second
	answerTime = 30 * time.Second
	idleTime   = time.Minute
	endTime    = 2 * time.Second // for answers under way when the server stops
	maxHeader  = 16 << 10
)

// Serve answers on l until ctx ends; facts is asked for each answer. Its error says why it stopped earlier.
func Serve(ctx context.Context, l net.Listener, facts func() Facts, log *slog.Logger) error {
	s := &http.Server{
		Handler: Handler(facts), ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	var g errgroup.Group
	ended := make(chan struct{})
	g.Go(func() error {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if s.Shutdown(last) != nil {
			return s.Close()
		}
		return nil
	})
	err := s.Serve(l)
	close(ended)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, g.Wait())
}

// Handler answers /livez, /readyz (also as /healthz) and /metrics, to those alone who ask for this machine by an
// address or as localhost: a web page elsewhere that makes its own name lead here gets nothing.
func Handler(facts func() Facts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, facts().Dead)
	})
	ready := func(w http.ResponseWriter, _ *http.Request) {
		f := facts()
		answer(w, append(append([]string(nil), f.Dead...), f.Unfit...))
	}
	mux.HandleFunc("GET /readyz", ready)
	mux.HandleFunc("GET /healthz", ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(facts), promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return onlyHere(mux)
}

// onlyHere turns away who does not ask for this machine.
func onlyHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if !Loopback(host) {
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

func answer(w http.ResponseWriter, reasons []string) {
	h := health{Status: "ok", Reasons: []string{}}
	code := http.StatusOK
	if len(reasons) > 0 {
		h, code = health{Status: "failing", Reasons: reasons}, http.StatusServiceUnavailable
	}
	body, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode health: %v", err)) // texts always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(body, '\n')) //nolint:errcheck // the client went away
}
