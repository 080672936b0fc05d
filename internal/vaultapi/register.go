package vaultapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Registration is what a registration's answer brought. Each ID that was asked for is in exactly one of Tickets,
// Missing, Barred and Crossed.
type Registration struct {
	Tickets map[archive.ID]archive.Ticket
	Missing []archive.ID          // the answer gives no bumId or no URL for it
	Barred  map[archive.ID]string // registered, but its ticket is against policy: why
	Crossed map[archive.ID]string // named twice, or sharing a bumId or an address with another: why
	Foreign int                   // records that name no clientUUID that was asked for
}

// grant is one record of the answer.
type grant struct {
	Remote scalar          `json:"bumId"`
	ID     scalar          `json:"clientUUID"`
	URL    json.RawMessage `json:"archiveFileURL"`
	accompanying
}

// Register registers documents in one POST of their frozen bytes, which leaves this machine at most once. Its error is
// an *Error: Refused where one of the documents is not accepted (nobody says which), TurnedAway where none was looked
// at.
func (c *Client) Register(ctx context.Context, v archive.VaultID, frozen []archive.Request) (Registration, error) {
	body, asked, err := join(frozen)
	if err != nil {
		return Registration{}, &Error{Outcome: NotSent, Code: "request", Text: "register: " + err.Error(), Err: err}
	}
	before := c.now()
	ans, err := c.api.Do(ctx, apicall.Request{Op: "register", Method: http.MethodPost,
		Path: []string{"v1", "vaults", string(v), "documents"}, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}})
	if err != nil {
		return Registration{}, fault(err, byRegistration)
	}
	list, err := records(ans.Body, "documents")
	if err != nil {
		return Registration{}, unreadable("register", ans, err)
	}
	m := matching{asked: asked, store: c.store, base: archive.Ticket{Sent: before, Date: ans.Date()}}
	return m.match(list, frozen), nil
}

// join makes the array that is sent. The elements' bytes are not touched.
func join(frozen []archive.Request) ([]byte, map[archive.ID]bool, error) {
	if len(frozen) == 0 {
		return nil, nil, errors.New("there is no document")
	}
	asked := make(map[archive.ID]bool, len(frozen))
	parts := make([][]byte, len(frozen))
	for i, r := range frozen {
		if asked[r.ID] {
			return nil, nil, errors.New("one clientUUID stands for two documents of a batch")
		}
		asked[r.ID], parts[i] = true, r.Body
	}
	body := append([]byte{'['}, bytes.Join(parts, []byte{','})...)
	return append(body, ']'), asked, nil
}

// matching sorts the records of one answer.
type matching struct {
	asked map[archive.ID]bool
	store *apicall.Store
	base  archive.Ticket // what all tickets of this answer have in common

	times   map[archive.ID]int // how often the answer names an ID
	remotes map[archive.RemoteID]archive.ID
	places  map[string]archive.ID // upload addresses
	out     Registration
}

const (
	crossNumber = "the answer gives its bumId to another document as well"
	crossPlace  = "the answer gives its upload address to another document as well"
	crossTwice  = "the answer names it more than once"
)

func (m *matching) match(list []json.RawMessage, frozen []archive.Request) Registration {
	m.times = map[archive.ID]int{}
	m.remotes, m.places = map[archive.RemoteID]archive.ID{}, map[string]archive.ID{}
	m.out = Registration{Tickets: map[archive.ID]archive.Ticket{}, Barred: map[archive.ID]string{}, Crossed: map[archive.ID]string{}}
	for _, raw := range list {
		m.record(raw)
	}
	for id := range m.out.Crossed {
		delete(m.out.Tickets, id)
		delete(m.out.Barred, id)
		if !m.asked[id] {
			delete(m.out.Crossed, id)
		}
	}
	for _, r := range frozen {
		_, ticket := m.out.Tickets[r.ID]
		_, barred := m.out.Barred[r.ID]
		_, crossed := m.out.Crossed[r.ID]
		if !ticket && !barred && !crossed {
			m.out.Missing = append(m.out.Missing, r.ID)
		}
	}
	return m.out
}

func (m *matching) record(raw json.RawMessage) {
	var g grant
	err := json.Unmarshal(raw, &g)
	id, idErr := archive.ParseID(string(g.ID))
	ours := err == nil && idErr == nil && m.asked[id]
	if !ours {
		m.out.Foreign++
		// What it holds is still looked at below: a number that is also given to one of ours crosses ours.
	}
	if m.times[id]++; ours && m.times[id] > 1 {
		m.out.Crossed[id] = crossTwice
	}
	if g.Remote == "" {
		return
	}
	remote, remoteErr := archive.ParseRemoteID(string(g.Remote))
	address, headers, urlErr := g.address()
	m.claim(id, archive.RemoteID(g.Remote), address)
	switch {
	case !ours || address == "" && urlErr == nil:
	case remoteErr != nil:
		m.out.Barred[id] = "its bumId cannot be used: " + words(remoteErr.Error())
	case urlErr != nil:
		m.out.Barred[id] = urlErr.Error()
	default:
		if err := m.store.Allowed(address); err != nil {
			m.out.Barred[id] = "upload address: " + err.Error()
			return
		}
		t := m.base
		t.Remote, t.URL, t.Headers = remote, archive.PresignedURL(address), headers
		t.SignedAt, t.Validity = lifetime(address, m.base.Date)
		m.out.Tickets[id] = t
	}
}

// claim notes whose a bumId and an upload address are, and crosses all who share one.
func (m *matching) claim(id archive.ID, remote archive.RemoteID, address string) {
	remote = archive.RemoteID(strings.ToLower(string(remote)))
	if other, taken := m.remotes[remote]; taken && other != id {
		m.out.Crossed[id], m.out.Crossed[other] = crossNumber, crossNumber
	}
	m.remotes[remote] = id
	if address == "" {
		return
	}
	at := place(address)
	if other, taken := m.places[at]; taken && other != id {
		m.out.Crossed[id], m.out.Crossed[other] = crossPlace, crossPlace
	}
	m.places[at] = id
}

// place is the object that an address stands for. With an object store's signature the query is only the grant; with
// anything else it may be what tells two places apart.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil || !u.Query().Has("X-Amz-Signature") {
		return address
	}
	return u.Host + u.EscapedPath()
}
