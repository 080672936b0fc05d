package apicall

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/test/kit"
)

// peer serves raw connections on loopback, each by do, and closes it then.
func peer(t *testing.T, do func(net.Conn)) (addr string) {
	t.Helper()
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); do(c) }()
		}
	}()
	return l.Addr().String()
}

// reset ends a connection as a router does that has forgotten it.
func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

// heard reads from c until it saw text.
func heard(c net.Conn, text string) {
	var all []byte
	b := make([]byte, 4096)
	for !bytes.Contains(all, []byte(text)) {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		all = append(all, b[:n]...)
	}
}

// says answers a whole request with raw bytes.
func says(raw string) func(net.Conn) {
	return func(c net.Conn) { heard(c, "BODY"); io.WriteString(c, raw) }
}

// drips answers with head and then with text again and again, slowly or as fast as it is read.
func drips(head, text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		heard(c, "BODY")
		_, err := io.WriteString(c, head)
		for err == nil {
			time.Sleep(pause) // the peer's time is real
			_, err = io.WriteString(c, text)
		}
	}
}

func bomb(head string, size int) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(make([]byte, 1<<20))
	z.Close()
	body := bytes.Repeat(b.Bytes(), size>>20) // members of one stream
	return fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

const okHead = "HTTP/1.1 200 OK\r\n"

// What a POST and a PUT make of each fault of the line and of the answer: what is certain, the word for machines, and
// words for a person. A fault after which nobody can know is never taken for a refusal or for "not sent".
func TestNetwork_I24_FaultsOfTheLine(t *testing.T) {
	kit.Waits(t, 0.5, "peers that answer slowly over a real line")
	rows := []struct {
		name  string
		peer  func(net.Conn)
		want  Outcome
		kind  string
		words string
		put   bool // the PUT succeeds: it looks at the beginning of the body alone
	}{
		{"ResetInTheRequest", func(c net.Conn) { c.Read(make([]byte, 10)); reset(c) }, OutcomeUnknown, "connection", "", false},
		{"ResetAfterTheRequest", func(c net.Conn) { heard(c, "BODY"); reset(c) }, OutcomeUnknown, "connection", "connection reset by peer", false},
		{"ResetInTheHead", func(c net.Conn) { says(okHead + "Content-Le")(c); reset(c) }, OutcomeUnknown, "connection", "", false},
		{"ResetInTheBody", func(c net.Conn) {
			says(okHead + "Content-Length: 100\r\n\r\n[{")(c)
			time.Sleep(20 * time.Millisecond) // a reset overtakes what was sent just before
			reset(c)
		}, OutcomeUnknown, "unreadable", "connection reset by peer", false},
		{"Silence", func(c net.Conn) { io.Copy(io.Discard, c) }, OutcomeUnknown, "timeout", "", false},
		{"SlowHead", drips(okHead, "X: y\r\n", 20*time.Millisecond), OutcomeUnknown, "timeout", "", false},
		{"SlowBody", drips(okHead+"Content-Length: 100000\r\n\r\n", " ", 20*time.Millisecond), OutcomeUnknown, "unreadable", "no answer in time", false},
		{"EndlessHead", drips(okHead, "X: "+strings.Repeat("y", 4000)+"\r\n", 0), OutcomeUnknown, "connection", "exceeded", false},
		{"EndlessHints", drips("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0), OutcomeUnknown, "connection", "exceeded", false},
		{"EndlessBody", drips(okHead+"Transfer-Encoding: chunked\r\n\r\n", "1000\r\n"+strings.Repeat("z", 4096)+"\r\n", 0), OutcomeUnknown, "unreadable", "larger than its limit", true},
		{"BodyCut", says(okHead + "Content-Length: 100\r\n\r\n[{"), OutcomeUnknown, "unreadable", "unexpected EOF", false},
		{"TwoLengths", says(okHead + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]x"), OutcomeUnknown, "connection", "Content-Length", false},
		{"NegativeLength", says(okHead + "Content-Length: -2\r\n\r\n[]"), OutcomeUnknown, "connection", "Content-Length", false},
		{"NotHTTP", says("SSH-2.0-OpenSSH_9.2\r\n"), OutcomeUnknown, "connection", "", false},
		{"NoStatus", says("HTTP/1.1 OK\r\n\r\n"), OutcomeUnknown, "connection", "", false},
		{"StatusOf7", says("HTTP/1.1 7 OK\r\n\r\n"), OutcomeUnknown, "connection", "", false},
		{"StatusOf999", says("HTTP/1.1 999 Request Denied\r\nContent-Length: 0\r\n\r\n"), OutcomeUnknown, "http-999", "", false},
		{"SwitchingProtocols", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), OutcomeUnknown, "http-101", "", false},
		{"GzipBomb", says(bomb(okHead, 300<<20)), OutcomeUnknown, "unreadable", "larger than its limit", true},
		{"GzipOfARefusal", says(bomb("HTTP/1.1 400 Bad Request\r\n", 64<<20)), NotProcessed, "http-400", "not text", false},
		{"NoGzip", says(okHead + "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n[                  ]"), OutcomeUnknown, "unreadable", "gzip", false},
		{"ColoursInTheReason", says("HTTP/1.1 400 \x1b[2Jpwned\r\nContent-Length: 13\r\n\r\n\x1b[31mred\r\nX:y"), NotProcessed, "http-400", "red X:y", false},
		{"ColoursInAHeader", says("HTTP/1.1 503 No\r\nX-Amz-Request-Id: \x1b[2Ja\r\nDate: \x1b]0;x\a\r\nRetry-After: \x1b[1m\r\nContent-Length: 0\r\n\r\n"), OutcomeUnknown, "", "", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			base := "http://" + peer(t, r.peer)
			api, store := clients(t, Config{BaseURL: base, Timeout: time.Second})
			_, err := do(t, api, Request{Op: "register", Method: "POST", Path: []string{"v1"}, Body: []byte("BODY"), Limit: 1 << 20})
			ce := failure(t, err)
			if r.kind == "" {
				r.kind = ce.Code
			}
			kit.Check(t, ce.Outcome == r.want && ce.Code == r.kind && strings.Contains(ce.Error(), r.words),
				"POST: %v, %s: %v", ce.Outcome, ce.Code, ce)
			kit.Check(t, !strings.ContainsFunc(ce.Error(), unicode.IsControl), "not fit for a log: %q", ce)
			_, err = store.put(context.Background(), upload{Op: "upload", URL: base + "/k?X-Amz-Signature=" + signatureCanary, Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), Stall: 300 * time.Millisecond})
			if r.put && err == nil {
				return
			}
			ce = failure(t, err)
			kit.Check(t, ce.Outcome == r.want && !strings.ContainsFunc(ce.Error(), unicode.IsControl), "PUT: %v, %s: %v", ce.Outcome, ce.Code, ce)
		})
	}
}

// What a peer sends beyond its answer is never taken for the answer to the next call.
func TestNetwork_I8_BytesBehindAnAnswer(t *testing.T) {
	var calls atomic.Int32
	addr := peer(t, func(c net.Conn) {
		for {
			heard(c, "BODY")
			n := calls.Add(1)
			if _, err := fmt.Fprintf(c, okHead+"Content-Length: 1\r\n\r\n%d"+okHead+"Content-Length: 5\r\n\r\nwrong", n); err != nil || n > 20 {
				return
			}
		}
	})
	api, _ := clients(t, Config{BaseURL: "http://" + addr})
	for range 3 {
		ans, err := do(t, api, post("register", "BODY"))
		if err != nil {
			failure(t, err) // a connection that spoke out of turn may also die of it
			continue
		}
		kit.Check(t, string(ans.Body) != "wrong", "the answer to nothing was taken for the answer")
	}
}

// Only what was heard after a request began to leave may answer it, whoever reads it when.
func TestLine_I8_WhatWasThereBeforeIsNoAnswer(t *testing.T) {
	type row struct {
		acts string // a: a request gets the connection, w: it writes, r: something is read; | looks at the answer to the one before
		want string // of each look: y: it is answered, n: it is not
	}
	kit.Rows(t, map[string]row{
		"Answered":            {"awr", "y"},
		"AnsweredTwice":       {"awrawr", "y"},
		"LongRequest":         {"awwrw", "y"}, // answered before all of it has left
		"NeverHeard":          {"aw", "n"},
		"BehindTheLastOne":    {"awraw", "n"},
		"BetweenTheTwo":       {"awrarw", "n"},
		"NothingHasLeft":      {"awrar", "n"},
		"GivenOnBeforeTheEnd": {"awra|wr", "yy"},
		"GivenOnUnanswered":   {"awa|", "nn"},
	}, func(t *testing.T, c row) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l, got := &trackedConn{Conn: ours}, ""
		var now, before *connUse
		look := func(turn *connUse) {
			got += map[bool]string{true: "y", false: "n"}[turn.closeUnlessAnswered()]
		}
		for _, act := range c.acts {
			var err error
			switch act {
			case 'a':
				before, now = now, beginUse(l, nil)
			case 'w':
				go func() { _, _ = theirs.Read(make([]byte, 1)) }()
				_, err = l.Write([]byte("q"))
			case 'r':
				go func() { _, _ = theirs.Write([]byte("a")) }()
				_, err = l.Read(make([]byte, 1))
			case '|':
				look(before)
			}
			kit.Must(t, err)
		}
		look(now)
		go func() { _, _ = l.Read(make([]byte, 1)) }()
		_, err := theirs.Write(nil) // it hears of a close at the other end
		closed := errors.Is(err, io.ErrClosedPipe)
		kit.Check(t, got == c.want && closed == strings.Contains(c.want, "n"), "answered: %s, closed: %v", got, closed)
	})
	t.Run("NothingLeavesBehindADoubtfulAnswer", func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := &trackedConn{Conn: ours}
		beginUse(l, nil)
		go func() { _, _ = theirs.Read(make([]byte, 1)) }()
		kit.Value(l.Write([]byte("q")))(t)
		beginUse(l, nil)
		kit.Fails(t, "written", kit.Err(l.Write([]byte("q"))), errUnasked)
	})
}

// leaf makes a key and a certificate that signs itself.
func leaf(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if change != nil {
		change(c)
	}
	der := kit.Value(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))(t)
	made := kit.Value(x509.ParseCertificate(der))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: made}
}

// Before TLS stands nothing was sent, whatever goes wrong on the way there.
func TestNetwork_I20_FaultsOfTLS(t *testing.T) {
	shake := func(conf *tls.Config) func(net.Conn) {
		return func(c net.Conn) { _ = tls.Server(c, conf).Handshake() } // that it fails is the point
	}
	good := leaf(t, nil)
	expired := leaf(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	})
	early := leaf(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
	})
	other := leaf(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} })
	with := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	old := with(good)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	rows := []struct {
		name    string
		peer    func(net.Conn)
		trusted *tls.Certificate
		kind    string
		words   string
	}{
		{"SelfSigned", shake(with(good)), nil, "certificate-unknown", "is from an authority that this machine does not know (it is for 127.0.0.1, issued by itself, valid from"},
		{"Expired", shake(with(expired)), &expired, "certificate-expired", "register: POST HOST/v1/x: the certificate of the service (HOST) was valid until " + dayOf(expired.Leaf.NotAfter) + "; by this machine's clock it is "},
		{"NotYetValid", shake(with(early)), &early, "certificate-early", "the certificate of the service (HOST) is valid from " + dayOf(early.Leaf.NotBefore) + " only; by this machine's clock it is "},
		{"OtherHost", shake(with(other)), &other, "certificate-foreign", "the certificate of the service (HOST) is that of another server (it is for other.example, issued by itself"},
		{"OldProtocol", shake(old), &good, "tls", "protocol version"},
		{"SpeaksHTTP", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, &good, "tls", "does not speak TLS"},
		{"ClosedInTheHandshake", func(c net.Conn) { c.Read(make([]byte, 10)) }, &good, "", ""},
		{"ResetInTheHandshake", func(c net.Conn) { c.Read(make([]byte, 10)); reset(c) }, &good, "connection", "connection reset by peer"},
		{"SilentInTheHandshake", func(c net.Conn) { io.Copy(io.Discard, c) }, &good, "timeout", "no answer in time"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			host := peer(t, r.peer)
			cfg := Config{BaseURL: "https://" + host, Timeout: 500 * time.Millisecond}
			if r.trusted != nil {
				cfg.CAFile = filepath.Join(t.TempDir(), "ca.pem")
				kit.Must(t, os.WriteFile(cfg.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.trusted.Certificate[0]}), 0o600))
			}
			api, store := clients(t, cfg)
			_, err := do(t, api, post("register", "[]"))
			ce := failure(t, err)
			if ce.Outcome != NotSent || r.kind != "" && ce.Code != r.kind || !strings.Contains(ce.Error(), strings.ReplaceAll(r.words, "HOST", host)) {
				t.Errorf("%v, %s: %v", ce.Outcome, ce.Code, ce)
			}
			_, err = store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), Stall: 500 * time.Millisecond})
			if ce := failure(t, err); ce.Outcome != NotSent || strings.HasPrefix(r.kind, "certificate-") && !strings.Contains(ce.Error(), "the certificate of the object store ("+host+") ") {
				t.Errorf("PUT: %v, %s: %v", ce.Outcome, ce.Code, ce)
			}
		})
	}
}

// A certificate that is not accepted is told with its owner: behind a proxy that is the proxy or the service.
func TestNetwork_I20_WhoseCertificateBehindAProxy(t *testing.T) {
	own := leaf(t, func(c *x509.Certificate) { c.DNSNames = []string{"archive.example"} })
	conf := &tls.Config{Certificates: []tls.Certificate{own}}
	shake := func(c net.Conn) { _ = tls.Server(c, conf).Handshake() } // that it fails is the point
	leads := func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1000)); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			shake(c)
		}
	}
	for proxy, words := range map[string]string{
		"https://" + peer(t, shake): "the certificate of the proxy is from an authority that this machine does not know",
		"http://" + peer(t, leads):  "the certificate of the service (archive.example) is from an authority that this machine does not know",
	} {
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Proxy: proxy})
		_, err := do(t, api, post("register", "[]"))
		if ce := failure(t, err); ce.Outcome != NotSent || ce.Code != "certificate-unknown" || !strings.Contains(ce.Error(), words) {
			t.Errorf(`%v, %s: %v, want ce.Outcome = %v, ce.Code = "certificate-unknown", ce with %q`, ce.Outcome, ce.Code, ce, NotSent, words)
		}
	}
}

// names answers every question for an IPv4 address with the next of these, as a name server does that wants to get
// behind a firewall; the last one stays.
func names(t *testing.T, addresses ...[4]byte) {
	t.Helper()
	conn := kit.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	var asked atomic.Int32
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			conn.WriteTo(dnsAnswer(b[:n], addresses, &asked), from)
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; conn.Close() })
}

// dnsAnswer turns a question into its answer: the header, the question as it came, and an address where one was asked for.
func dnsAnswer(q []byte, addresses [][4]byte, asked *atomic.Int32) []byte {
	end := 12
	for end < len(q) && q[end] != 0 {
		end += int(q[end]) + 1
	}
	end += 5
	kind := binary.BigEndian.Uint16(q[end-4:])
	a := append([]byte(nil), q[:end]...)
	binary.BigEndian.PutUint16(a[2:], 0x8180)
	copy(a[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if kind != 1 {
		return a
	}
	a[7] = 1
	ip := addresses[min(int(asked.Add(1)), len(addresses))-1]
	return append(append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
}

// I20: a name is looked up once for each connection, and the address it stands for then is the one that is judged: a
// second answer that leads into the local network is refused before a byte is sent.
func TestNetwork_I20_NameThatChangesItsAddress(t *testing.T) {
	var reached atomic.Int32
	addr := peer(t, func(net.Conn) { reached.Add(1) })
	_, port, _ := net.SplitHostPort(addr)
	names(t, [4]byte{192, 0, 2, 1}, [4]byte{127, 0, 0, 1}) // the first is reserved for examples: nobody answers
	_, store := clients(t, Config{BaseURL: "https://archive.example"})
	put := func() *Error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := store.put(ctx, upload{Op: "upload", URL: "https://bucket.example:" + port + "/k?X-Amz-Signature=" + signatureCanary, Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
		return failure(t, err)
	}
	ce := put()
	kit.Check(t, ce.Outcome == NotSent && ce.Code != "policy", "a public address: %v, %s: %v", ce.Outcome, ce.Code, ce)
	if ce := put(); ce.Outcome != NotSent || ce.Code != "policy" || !strings.Contains(ce.Error(), "host bucket.example refused: its address is not a public one") {
		t.Errorf("the local network: %v, %s: %v", ce.Outcome, ce.Code, ce)
	}
	kit.Want(t, "the local network was reached", reached.Load(), 0)
}

// I20: that a host was configured opens the port that was configured, and no other on it.
func TestNetwork_I20_OtherPortOfAConfiguredHost(t *testing.T) {
	names(t, [4]byte{127, 0, 0, 1})
	var reached atomic.Int32
	addr := peer(t, func(net.Conn) { reached.Add(1) })
	_, port, _ := net.SplitHostPort(addr)
	_, store := clients(t, Config{BaseURL: "https://archive.example"})
	_, err := store.put(t.Context(), upload{Op: "upload", URL: "https://archive.example:" + port + "/k", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
	ce := failure(t, err)
	kit.Check(t, ce.Code == "policy" && reached.Load() == 0, `%s: %v, want ce.Code = "policy", reached.Load() = 0`, ce.Code, ce)
}

// I20: the body of a registration goes to configured hosts alone, whatever address signs itself.
func TestNetwork_I20_PostDoesNotFollowASignedAddress(t *testing.T) {
	net := &network{hosts: map[string]http.HandlerFunc{"https://archive.example": to(307, "https://bucket.example/k?X-Amz-Signature="+signatureCanary)}}
	api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: net})
	_, err := do(t, api, post("register", "[]"))
	var pe *PolicyError
	if failure(t, err); !errors.As(err, &pe) || pe.Host != "bucket.example" || len(net.log) != 1 {
		t.Errorf("%d requests: %v", len(net.log), err)
	}
}

// A download that moves, but so that it would never end, is left; one that is slow and ends is not.
func TestNetwork_CrawlingDownloadIsLeft(t *testing.T) {
	for name, row := range map[string]struct {
		step int // bytes a second
		size int
		ok   bool
	}{"Crawls": {50, 1 << 20, false}, "Slow": {500, 1 << 20, true}, "SlowAndShort": {1, 500, true}} {
		kit.Bubble(t, name, func(t *testing.T) {
			_, store := clients(t, Config{BaseURL: "https://archive.example", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				left := row.size
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(readFunc(func(p []byte) (int, error) {
					if left <= 0 || r.Context().Err() != nil {
						return 0, cmp.Or(r.Context().Err(), io.EOF)
					}
					time.Sleep(time.Second)
					n := min(row.step, len(p), left)
					left -= n
					return n, nil
				}))}, nil
			})})
			begun := time.Now()
			_, err := store.Fetch(t.Context(), "download", "https://bucket.example/k", func(_ *Answer, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
			kit.Check(t, row.ok == (err == nil), "after %v: %v", time.Since(begun), err)
			if err != nil && (!strings.Contains(failure(t, err).Error(), "the transfer crawls") || time.Since(begun) > 11*time.Minute) {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		})
	}
}

// wrapped serves each connection by do, behind so many layers of TLS: none, that of the store, or that of the store within
// that of a proxy. Beside the configuration that leads there it returns the address of the store.
func wrapped(t *testing.T, layers int, do func(net.Conn)) (cfg Config, base string) {
	t.Helper()
	const host = "store.example"
	cert := leaf(t, func(c *x509.Certificate) { c.DNSNames = []string{host} })
	secured := func(c net.Conn, do func(net.Conn)) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if err := s.Handshake(); err != nil {
			t.Error(err)
			return
		}
		do(s)
	}
	if layers == 0 {
		base = "http://" + peer(t, do)
		return Config{BaseURL: base}, base
	}
	cfg.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(cfg.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600))
	if layers == 1 {
		cfg.BaseURL = "https://" + peer(t, func(c net.Conn) { secured(c, do) })
		return cfg, cfg.BaseURL
	}
	cfg.BaseURL = "https://archive.example"
	cfg.Proxy = "https://" + peer(t, func(c net.Conn) {
		secured(c, func(c net.Conn) {
			heard(c, "\r\n\r\n") // CONNECT
			io.WriteString(c, okHead+"\r\n")
			secured(c, do)
		})
	})
	return cfg, "https://" + host
}

// I12: a yes that came too early is none, however often the connection is wrapped, though net/http hands it out when all of the
// content has left: the hooks hold the answer back until then.
func TestPut_I12_AnEarlyYesThroughAProxy(t *testing.T) {
	const size = 700_000 // no write to the connection holds all of it
	for name, r := range map[string]struct {
		header, body int // how much of the request has been written, in fields and in pieces of the content, before the yes
		want         error
	}{
		"BeforeTheRequest": {header: 1, want: errUnasked},
		"BeforeTheContent": {body: 6, want: errAnsweredEarly},
		"AfterTheContent":  {},
	} {
		for layers := range 3 {
			t.Run(fmt.Sprint(name, "/", layers), func(t *testing.T) {
				t.Parallel()
				speak, came, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
				early := r.want != nil
				cfg, base := wrapped(t, layers, func(c net.Conn) {
					if early {
						<-speak
						io.WriteString(c, yes)
					}
					read := 0
					for b := make([]byte, 64<<10); read < size; {
						n, err := c.Read(b)
						if err != nil {
							return
						}
						if read += n; bytes.Contains(b[:n], []byte("\r\n\r\n")) {
							read -= bytes.Index(b[:n], []byte("\r\n\r\n")) + 4
						}
					}
					if !early {
						io.WriteString(c, yes)
					}
				})
				fields, pieces := 0, 0
				await := func(at *int, when int) {
					if *at++; *at == when {
						close(speak)
						<-came
					}
				}
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					WroteHeaderField:     func(string, []string) { await(&fields, r.header) },
					GotFirstResponseByte: func() { close(came); <-left },
					WroteRequest:         func(httptrace.WroteRequestInfo) { close(left) },
				})
				content := strings.Repeat("z", size)
				from := strings.NewReader(content)
				_, store := clients(t, cfg)
				_, err := store.put(ctx, upload{Op: "upload", URL: base + "/k?X-Amz-Signature=" + signatureCanary, Size: size, SHA256: sum(content), Stall: 20 * time.Second,
					Open: func() (io.ReadCloser, error) {
						return io.NopCloser(readFunc(func(p []byte) (int, error) { await(&pieces, r.body); return from.Read(p) })), nil
					}})
				if !early {
					kit.Want(t, "the error", err, nil)
					return
				}
				ce := failure(t, err)
				kit.Check(t, ce.Outcome == OutcomeUnknown && errors.Is(err, r.want), "%v: %v, want ce.Outcome = %v, error %v", ce.Outcome, ce, OutcomeUnknown, r.want)
			})
		}
	}
}
