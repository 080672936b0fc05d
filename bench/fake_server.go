package main

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// fakeServer is the vault interface as far as vaultd uses it, made to cost as little as it can: what it is sent is
// counted and forgotten, and it is up to the measurement to find that the figures are right. The strict stand-in, with
// opinions about everything, is the emulator.
type fakeServer struct {
	o      fakeOptions
	base   string // its own address
	signer signer
	faults []fault

	mu      sync.Mutex
	rng     *rand.ChaCha8          // guarded by mu
	stats   fakeStats              // guarded by mu
	byBumID map[string]*fakeDoc    // guarded by mu
	order   []*fakeDoc             // as they were registered; guarded by mu
	objects []*fakeDoc             // as they were stored first; guarded by mu
	begins  []time.Time            // of uploads within the last rush; guarded by mu
	clients map[string]*fakeClient // by clientUUID; guarded by mu
}

// fakeClient is one identity of a document: how many registrations it has, how many of them hold a package, and how many
// uploads were begun on them.
type fakeClient struct{ registered, holding, begun int }

// fakeDoc is one registration. What changes once it is registered is guarded by the server's mu.
type fakeDoc struct {
	bumID, clientUUID, documentID string

	client  *fakeClient
	faulted bool // its address ends early

	stored bool
	size   int64
	md5    string
	at     time.Time // when it was stored
	told   bool      // that it is archived
}

func newFakeServer(o fakeOptions, base string) (*fakeServer, error) {
	faults, err := parseFaults(o.Faults)
	if o.Window == 0 {
		o.Window = 15 * time.Minute
	}
	return &fakeServer{o: o, base: base, signer: storeSigner(), faults: faults,
		rng: rand.NewChaCha8([32]byte{byte(o.Seed), byte(o.Seed >> 8), 'f'}), byBumID: map[string]*fakeDoc{}, clients: map[string]*fakeClient{}}, err
}

func (s *fakeServer) handler() http.Handler {
	const documents = "/v1/vaults/{vault}/documents"
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+documents, s.withFaults("register", s.requirePassword(s.serveRegister)))
	mux.HandleFunc("GET "+documents+"/status", s.withFaults("list", s.requirePassword(s.serveStatusList)))
	mux.HandleFunc("GET "+documents+"/{bumId}/status", s.withFaults("status", s.requirePassword(s.serveStatus)))
	mux.HandleFunc("GET /v1/vaults/{vault}/index", s.withFaults("index", s.requirePassword((&filledIndex{docs: s.o.Index, rewritten: s.o.Rewritten}).page)))
	mux.HandleFunc("GET /v1/vaults", s.withFaults("vaults", s.requirePassword(s.serveVaults)))
	mux.HandleFunc("POST "+pdfPath, s.withFaults("register", s.requirePassword(s.serveRegisterPDF)))
	s.addExtractRoutes(mux)
	s.addNetworkRoutes(mux)
	mux.HandleFunc("PUT /packages/{name}", s.withFaults("store", s.servePut))
	mux.HandleFunc("GET /_stats", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		writeJSON(w, s.stats)
	})
	mux.HandleFunc("GET /_objects", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := make([]stored, len(s.objects))
		for i, d := range s.objects {
			all[i] = stored{d.bumID, d.clientUUID, d.size, d.md5}
		}
		writeJSON(w, all)
	})
	mux.HandleFunc("GET /_clients", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		registered := make(map[string]int, len(s.clients))
		for id, c := range s.clients {
			registered[id] = c.registered
		}
		writeJSON(w, registered)
	})
	return mux
}

// updateStats changes the figures.
func (s *fakeServer) updateStats(change func(*fakeStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

func (s *fakeServer) requirePassword(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, secret, ok := r.BasicAuth(); !ok || user != benchUser || secret != benchSecret {
			s.updateStats(func(st *fakeStats) { st.Unauthorized++ })
			http.Error(w, `{"message":"invalid credentials"}`, http.StatusForbidden)
			return
		}
		h(w, r)
	}
}

func (s *fakeServer) serveVaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, []map[string]string{{"id": benchVault, "name": "Bench"}})
}

// serveRegister takes a batch and gives each document a number and an address.
func (s *fakeServer) serveRegister(w http.ResponseWriter, r *http.Request) {
	s.updateStats(func(st *fakeStats) { st.Posts++ })
	var batch []struct {
		ClientUUID string `json:"clientUUID"`
		DocumentID string `json:"documentId"`
	}
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || len(batch) == 0 || len(batch) > 500 {
		http.Error(w, `{"message":"not an array of 1 to 500 documents"}`, http.StatusBadRequest)
		return
	}
	type address struct {
		URL string `json:"url"`
	}
	type grant struct {
		BumID          string  `json:"bumId"`
		DocumentID     string  `json:"documentId"`
		ClientUUID     string  `json:"clientUUID"`
		ArchiveFileURL address `json:"archiveFileURL"`
	}
	grants := make([]grant, len(batch))
	faulted := s.drawFault("batch") != nil
	for i, e := range batch {
		d := s.addDocument(&fakeDoc{clientUUID: e.ClientUUID, documentID: e.DocumentID, faulted: faulted})
		grants[i] = grant{d.bumID, d.documentID, d.clientUUID, address{s.signer.presign(s.storeURL()+"/"+d.bumID+".zip", time.Now(), s.o.Window)}}
	}
	s.updateStats(func(st *fakeStats) { st.BatchCalls++; st.Registered += len(batch) })
	writeJSON(w, grants)
}

// storeURL is where packages are to be sent.
func (s *fakeServer) storeURL() string {
	if s.o.Store != "" {
		return s.o.Store
	}
	return s.base + "/packages"
}

func (s *fakeServer) addDocument(d *fakeDoc) *fakeDoc {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.bumID = uuid.NewString() // not by the seed: a filled ledger knows the numbers of the stand-ins that it had before
	s.byBumID[d.bumID] = d
	s.order = append(s.order, d)
	if s.clients[d.clientUUID] == nil {
		s.clients[d.clientUUID] = &fakeClient{}
	}
	d.client = s.clients[d.clientUUID]
	if d.client.registered++; d.client.registered > 1 {
		s.stats.Reregistered++
	}
	return d
}

// denial is what the store answers in place of taking a package.
type denial struct {
	status        int
	code, message string
	count         func(*fakeStats)
}

// servePut takes a package: all of it or nothing.
func (s *fakeServer) servePut(w http.ResponseWriter, r *http.Request) {
	s.updateStats(func(st *fakeStats) { st.Puts++ })
	d, no := s.findTarget(r)
	if no == nil {
		no = s.receiveBody(r, d)
	}
	if no == nil {
		return // 200
	}
	if no.count != nil {
		s.updateStats(no.count)
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(no.status)
	body, err := xml.Marshal(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: no.code, Message: no.message})
	if err == nil {
		_, _ = w.Write(body) // unneeded once the client has gone
	}
}

// findTarget is the registration that a PUT is for, if it may be.
func (s *fakeServer) findTarget(r *http.Request) (*fakeDoc, *denial) {
	expired := &denial{403, "AccessDenied", "Request has expired", func(st *fakeStats) { st.Expired++ }}
	bumID, _ := strings.CutSuffix(path.Base(r.URL.Path), ".zip")
	d := s.bookUploadBegin(bumID)
	switch err := s.signer.verify(r, time.Now()); {
	case errors.Is(err, errExpired):
		return nil, expired
	case err != nil:
		return nil, &denial{403, "SignatureDoesNotMatch", err.Error(), func(st *fakeStats) { st.BadSignatures++ }}
	case r.Header.Get("Authorization") != "":
		return nil, &denial{400, "InvalidArgument", "Only one auth mechanism allowed", nil}
	case d == nil:
		return nil, &denial{404, "NoSuchKey", "The specified key does not exist.", nil}
	case d.faulted:
		return nil, expired
	case r.ContentLength < 0:
		return nil, &denial{411, "MissingContentLength", "You must provide the Content-Length HTTP header.", nil}
	}
	return d, nil
}

// rush is the time in which uploads are counted to see how many come at once.
const rush = 100 * time.Millisecond

// bookUploadBegin books that an upload for a number has begun; nil: nobody has that number.
func (s *fakeServer) bookUploadBegin(bumID string) *fakeDoc {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.begins = append(s.begins, now)
	for now.Sub(s.begins[0]) >= rush {
		s.begins = s.begins[1:]
	}
	s.stats.Rush = max(s.stats.Rush, len(s.begins))
	d := s.byBumID[bumID]
	if d == nil {
		return nil
	}
	if d.client.begun++; d.client.begun > 1 {
		s.stats.Rebegun++
	}
	return d
}

// buffers are for bodies that are only counted: io.Discard reads with small ones.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// receiveBody reads the body, hashed where that is asked for and kept where there is a place for it, and books it.
func (s *fakeServer) receiveBody(r *http.Request, d *fakeDoc) *denial {
	broken := &denial{500, "InternalError", "We encountered an internal error. Please try again.", nil}
	to, sum := io.Discard, md5.New()
	if s.o.Verify {
		to = sum
	}
	keep := func() error { return nil }
	if s.o.Disk != "" {
		f, err := os.CreateTemp(s.o.Disk, "incoming-*")
		if err != nil {
			return broken
		}
		defer func() { _, _ = f.Close(), os.Remove(f.Name()) }() // it has its own name by then, if all went well
		to = io.MultiWriter(to, f)
		keep = func() error { return os.Rename(f.Name(), filepath.Join(s.o.Disk, d.bumID+".zip")) }
	}
	buf := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buf)
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, r.Body, buf[:])
	switch short := err != nil || n != r.ContentLength; {
	case short && s.o.Lax && r.Header.Get("Content-MD5") == "":
		s.updateStats(func(st *fakeStats) { st.TakenShort++ })
	case short:
		return &denial{400, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header", func(st *fakeStats) { st.ShortBodies++ }}
	}
	digest := ""
	if s.o.Verify {
		digest = base64.StdEncoding.EncodeToString(sum.Sum(nil))
		if want := r.Header.Get("Content-MD5"); want != "" && want != digest {
			return &denial{400, "BadDigest", "The Content-MD5 you specified did not match what we received.", func(st *fakeStats) { st.BadDigests++ }}
		}
	}
	if err := keep(); err != nil {
		return broken
	}
	s.bookStored(d, n, digest)
	return nil
}

// bookStored counts a package that was stored.
func (s *fakeServer) bookStored(d *fakeDoc, size int64, md5 string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Stored++
	s.stats.Bytes += size
	switch {
	case !d.stored:
		s.objects = append(s.objects, d)
		if d.client.holding++; d.client.holding == 2 {
			s.stats.Duplicates++
		}
	case d.size == size && d.md5 == md5:
		s.stats.Again++
	default:
		s.stats.Different++
	}
	d.stored, d.size, d.md5, d.at = true, size, md5, time.Now()
}

func (s *fakeServer) serveStatus(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.stats.StatusAsked++
	d, known := s.byBumID[r.PathValue("bumId")]
	var record statusRecord
	if known {
		record = s.statusRecordOf(d)
	}
	s.mu.Unlock()
	if id, err := uuid.Parse(r.PathValue("bumId")); !known && s.o.Busy && err == nil {
		known = true
		record = statusRecord{BumID: id.String(), DocumentID: "R", ClientUUID: twin(id).String(), LastUpdated: time.Now().UTC().Format(time.RFC3339), Status: "ArchivingInProgress"}
	}
	if !known {
		http.Error(w, `{"message":"no document with this bumId"}`, http.StatusNotFound)
		return
	}
	writeJSON(w, record)
}

// serveStatusList gives the last 500, newest first.
func (s *fakeServer) serveStatusList(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.stats.ListsAsked++
	all := []statusRecord{}
	for i := len(s.order) - 1; i >= 0 && len(all) < 500; i-- {
		all = append(all, s.statusRecordOf(s.order[i]))
	}
	s.mu.Unlock()
	writeJSON(w, all)
}

type statusRecord struct {
	BumID       string  `json:"bumId"`
	DocumentID  string  `json:"documentId"`
	ClientUUID  string  `json:"clientUUID"`
	LastUpdated string  `json:"lastUpdated"`
	Status      string  `json:"status"`
	Message     *string `json:"message"`
}

// statusRecordOf is what the service says about a document. The caller holds mu.
func (s *fakeServer) statusRecordOf(d *fakeDoc) statusRecord {
	r := statusRecord{BumID: d.bumID, DocumentID: d.documentID, ClientUUID: d.clientUUID, LastUpdated: d.at.UTC().Format(time.RFC3339), Status: "WaitingForPackageUpload"}
	switch {
	case !d.stored:
		r.LastUpdated = time.Now().UTC().Format(time.RFC3339)
	case time.Since(d.at) < s.o.ArchiveAfter:
		r.Status = "ArchivingInProgress"
	default:
		r.Status = "ArchivingSuccessful"
		if !d.told {
			d.told = true
			s.stats.Archived++
		}
	}
	return r
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(append(body, '\n')) // unneeded once the client has gone
}
