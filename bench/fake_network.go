package main

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// fakeNetwork is the business network as far as vaultd sends to it, made to cost as little as it can: files and documents are counted and
// forgotten, and notifications are told of once they are asked for.
type fakeNetwork struct {
	mu      sync.Mutex
	stats   networkStats    // guarded by mu
	sent    []string        // numbers of the documents, in their order; guarded by mu
	has     map[string]bool // guarded by mu
	waiting []fakeNotice    // that nobody acknowledged, in their order; guarded by mu
	gone    map[string]bool // acknowledged; guarded by mu
}

// networkStats is what it counted.
type networkStats struct {
	Files, Documents, Repeated, Lists, Acknowledged, Waiting int
	Bytes                                                    int64
}

type fakeNotice struct {
	BumID           string `json:"bumid"`
	DocumentType    string `json:"documentType"`
	Acknowledgement string `json:"acknowledgementId"`
	ResponseCode    string `json:"responseCode"`
	ActionCode      string `json:"actionCode"`
	Created         string `json:"notificationCreated"`
	Description     string `json:"description"`
}

const noticesPath = "/v1.1/notifications"

// addNetworkRoutes serves the business network.
func (s *fakeServer) addNetworkRoutes(mux *http.ServeMux) {
	n := &fakeNetwork{has: map[string]bool{}, gone: map[string]bool{}}
	mux.HandleFunc("POST /v2/files", s.withFaults("file", s.requirePassword(n.serveFile)))
	mux.HandleFunc("POST /v2/invoices/{bumId}", s.withFaults("send", s.requirePassword(n.serveDocument)))
	mux.HandleFunc("GET "+noticesPath, s.withFaults("notices", s.requirePassword(n.serveNotices)))
	mux.HandleFunc("DELETE "+noticesPath+"/{id}", s.withFaults("acknowledge", s.requirePassword(n.acknowledge)))
	mux.HandleFunc("GET /_network", func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		st := n.stats
		st.Waiting = len(n.waiting) - len(n.gone)
		writeJSON(w, st)
	})
	mux.HandleFunc("GET /_tell", n.tell)
}

// serveFile counts one file and gives it a number.
func (n *fakeNetwork) serveFile(w http.ResponseWriter, r *http.Request) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	var size int64
	for count := 0; ; count++ {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) && count == 2 {
			break
		}
		if err == nil {
			size, err = io.Copy(io.Discard, part)
		}
		if err != nil {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
	}
	n.mu.Lock()
	n.stats.Files++
	n.stats.Bytes += size
	n.mu.Unlock()
	writeJSON(w, map[string]string{"version": "1", "fileId": uuid.NewString()})
}

// serveDocument counts one document.
func (n *fakeNetwork) serveDocument(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id := r.PathValue("bumId"); n.has[id] {
		n.stats.Repeated++
	} else {
		n.has[id], n.sent = true, append(n.sent, id)
		n.stats.Documents++
	}
}

// tell makes so many notifications, about all documents in turn, and says what was counted before.
func (n *fakeNetwork) tell(w http.ResponseWriter, r *http.Request) {
	many, err := strconv.Atoi(r.URL.Query().Get("n"))
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || len(n.sent) == 0 {
		http.Error(w, "no number, or no document", http.StatusBadRequest)
		return
	}
	for i := range many {
		n.waiting = append(n.waiting, fakeNotice{BumID: n.sent[i%len(n.sent)], DocumentType: "Invoice", Acknowledgement: uuid.NewString(), ResponseCode: "TechnicalInformation", ActionCode: "DeliveryDelayed",
			Created: "1790000000", Description: "It takes longer than usual. It is tried again."})
	}
	writeJSON(w, n.stats)
}

// serveNotices serves one page of what waits.
func (n *fakeNetwork) serveNotices(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	page, errPage := strconv.Atoi(q.Get("page"))
	size, errSize := strconv.Atoi(q.Get("pageSize"))
	if errPage != nil || errSize != nil || page < 1 || size < 1 {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.Lists++
	if q.Get("documentType") != "Invoice" {
		writeJSON(w, map[string]any{"hasMoreItems": false, "notifications": []fakeNotice{}})
		return
	}
	if len(n.gone) > len(n.waiting)/2 {
		left := n.waiting[:0]
		for _, one := range n.waiting {
			if !n.gone[one.Acknowledgement] {
				left = append(left, one)
			}
		}
		n.waiting, n.gone = left, map[string]bool{}
	}
	some, skip, more := []fakeNotice{}, (page-1)*size, false
	for _, one := range n.waiting {
		switch {
		case n.gone[one.Acknowledgement]:
		case skip > 0:
			skip--
		case len(some) == size:
			more = true
		default:
			some = append(some, one)
		}
		if more {
			break
		}
	}
	writeJSON(w, map[string]any{"hasMoreItems": more, "notifications": some})
}

// acknowledge takes a notification away.
func (n *fakeNetwork) acknowledge(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[r.PathValue("id")] = true
	n.stats.Acknowledged++
}
