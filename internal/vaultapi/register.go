package vaultapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// documentsRefused are the answers to a registration that speak of its documents. All others speak of credentials, rights
// or the path.
var documentsRefused = []int{http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

// grant is one record of the answer.
type grant struct {
	remote, id string
	fields     apicall.Fields
}

func readGrant(raw json.RawMessage) (grant, error) {
	f, err := apicall.ReadFields(raw, "bumId", "clientUUID", "archiveFileURL", "headers", "fields")
	if err != nil {
		return grant{}, err
	}
	return grant{f.Text("bumId"), f.Text("clientUUID"), f}, nil
}

// Register registers documents in one POST of their frozen bytes, which leaves this machine at most once. Its error is
// an *apicall.Error: Refused where one of the documents is not accepted (nobody says which), NotProcessed where none was
// looked at.
func (c *Client) Register(ctx context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	body, asked, err := joinRequests(frozen)
	if err != nil {
		return archive.RegisterResult{}, &apicall.Error{Outcome: apicall.NotSent, Code: "request", Text: "register: " + err.Error(), Err: err}
	}
	// The life of a ticket counts from before the POST: the service signs it at an unknown time after that.
	before := c.now()
	// This is the POST. If the process dies in it, the documents may be registered. Each entry is committed as registering
	// before, and the next start notes their numbers from the status list as orphans, where it can.
	ans, err := c.apiOf(v).Do(ctx, apicall.Request{Op: "register", Method: http.MethodPost,
		Path: []string{"v1", "vaults", string(v), "documents"}, Body: body, Limit: answerLimit(len(frozen)),
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}})
	if err != nil {
		return archive.RegisterResult{}, wordRefusal(apicall.BlameRequest(err, documentsRefused...))
	}
	defer ans.Release()
	list, err := apicall.ReadRecords(ans.Body, "documents")
	if err != nil {
		return archive.RegisterResult{}, ans.Unreadable("register", err)
	}
	for _, raw := range list {
		// A record with two values for one field does not say whose its number is. Then nothing of the answer is believed.
		if _, err := readGrant(raw); errors.Is(err, apicall.ErrTwice) {
			return archive.RegisterResult{}, ans.Unreadable("register", err)
		}
	}
	m := matching{asked: asked, store: c.store, window: c.window, base: archive.Ticket{Sent: before, Date: ans.Date()}}
	return m.matchRecords(list), nil
}

// joinRequests makes the array that is sent, and the set of identities in it.
func joinRequests(frozen []archive.RegisterRequest) ([]byte, map[archive.ID]bool, error) {
	if len(frozen) == 0 {
		return nil, nil, errors.New("there is no document")
	}
	asked := make(map[archive.ID]bool, len(frozen))
	var body []byte
	for _, r := range frozen {
		if asked[r.ID] {
			return nil, nil, errors.New("one clientUUID stands for two documents of a batch")
		}
		asked[r.ID] = true
		body = append(append(body, ','), freezeRequest(r)...)
	}
	body[0] = '['
	return append(body, ']'), asked, nil
}

// freezeRequest makes the JSON object of one document: clientUUID, then its canonical metadata as it is stored. So all
// registrations of an identity send the same bytes.
func freezeRequest(r archive.RegisterRequest) []byte {
	body := fmt.Appendf(nil, `{"clientUUID":"%s"`, r.ID)
	if len(r.Metadata) > 2 {
		body = append(body, ',')
		return append(body, r.Metadata[1:]...)
	}
	return append(body, '}')
}

// matching matches the records of one answer to the documents that were asked for.
type matching struct {
	asked  map[archive.ID]bool
	store  *apicall.Store
	window time.Duration
	base   archive.Ticket // what all tickets of this answer have in common

	times   map[archive.ID]int // how often the answer names an ID
	remotes map[archive.RemoteID]archive.ID
	objects map[string]archive.ID // that the upload addresses lead to
	out     archive.RegisterResult
}

const (
	crossNumber = "the answer gives its bumId to another document as well"
	crossPlace  = "the answer gives its upload address to another document as well"
	crossTwice  = "the answer names it more than once"
)

func (m *matching) matchRecords(list []json.RawMessage) archive.RegisterResult {
	m.times = map[archive.ID]int{}
	m.remotes, m.objects = map[archive.RemoteID]archive.ID{}, map[string]archive.ID{}
	m.out = archive.RegisterResult{Tickets: map[archive.ID]archive.Ticket{}, Barred: map[archive.ID]string{}, Crossed: map[archive.ID]string{}}
	for _, raw := range list {
		m.addRecord(raw)
	}
	// A crossed document gets no ticket: its content could be stored in the place of another one.
	for id := range m.out.Crossed {
		delete(m.out.Tickets, id)
		delete(m.out.Barred, id)
		if !m.asked[id] {
			delete(m.out.Crossed, id)
		}
	}
	return m.out
}

func (m *matching) addRecord(raw json.RawMessage) {
	g, err := readGrant(raw)
	id, idErr := archive.ParseID(g.id)
	ours := err == nil && idErr == nil && m.asked[id]
	if !ours {
		// The record is still read below: where it shares a number with one of ours, ours gets no ticket.
		m.out.Foreign++
	}
	if m.times[id]++; ours && m.times[id] > 1 {
		m.out.Crossed[id] = crossTwice
	}
	if g.remote == "" {
		return
	}
	remote, remoteErr := archive.ParseRemoteID(g.remote)
	ticket, urlErr := m.store.ReadTicket(m.base, g.fields["archiveFileURL"], g.fields)
	// A number that cannot be used counts as well: two records may share it.
	m.noteOwner(id, cmp.Or(remote, archive.RemoteID(g.remote)), ticket.URL)
	switch {
	case !ours || ticket.URL == "":
	case remoteErr != nil:
		m.out.Barred[id] = "its bumId cannot be used: " + sanitizeMessage(remoteErr.Error())
	case urlErr != nil:
		m.out.Barred[id] = urlErr.Error()
	default:
		ticket.Remote = remote
		// A ticket carries its life. The ledger keeps it, so a restart uses the ticket for as long.
		m.out.Tickets[id] = ticket.LimitLife(m.window)
	}
}

// noteOwner notes which document a bumId and an upload address belong to, and marks all documents that share one as crossed. It
// knows this answer alone. The ledger does the same with all tickets that it ever got.
func (m *matching) noteOwner(id archive.ID, remote archive.RemoteID, address archive.PresignedURL) {
	if other, taken := m.remotes[remote]; taken && other != id {
		m.out.Crossed[id], m.out.Crossed[other] = crossNumber, crossNumber
	}
	m.remotes[remote] = id
	if address == "" {
		return
	}
	object := address.Object()
	if other, taken := m.objects[object]; taken && other != id {
		m.out.Crossed[id], m.out.Crossed[other] = crossPlace, crossPlace
	}
	m.objects[object] = id
}
