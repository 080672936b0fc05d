package pdfapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// registerAnswer limits the answer to a registration, in bytes: an address and a few headers.
const registerAnswer = 256 << 10

// The fields of a registration.
const (
	receivingField    = "receivingEmailAddress"
	notificationField = "notificationEmailAddress"
)

// Register registers the upload of one PDF in one POST, whose body is the
// frozen Metadata of the request, byte for byte. It leaves this machine at most
// once. The interface takes one document in a call and knows no vaults: frozen
// has one element, and the vault is not read. The ticket has its own life; see
// [archive.Ticket.Life]. If the policy forbids its address, the document is
// Barred.
//
// Its error is an *apicall.Error. Refused: the service does not accept the addresses in the body, which come from the
// configuration; Field names the one where the answer tells, and the text says what to correct. NotProcessed: credentials, rights,
// or the path. OutcomeUnknown: there may be an upload slot that nobody has the address of, and so nothing is ever sent to it.
func (c *Client) Register(ctx context.Context, _ archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	if len(frozen) != 1 || len(frozen[0].Metadata) == 0 {
		err := errors.New("a registration is of one document, with a frozen body")
		return archive.RegisterResult{}, &apicall.Error{Outcome: apicall.NotSent, Code: "request", Text: "register: " + err.Error(), Err: err}
	}
	id, body := frozen[0].ID, frozen[0].Metadata
	// The life of a ticket counts from before the POST: the service signs it at an unknown time after that.
	before := c.now()
	// This is the POST. If the process dies in it, the service may have made an upload slot. The entry is committed as registering
	// before. The next start registers again, and the slot stays empty, because nobody has its address.
	ans, err := c.api.Do(ctx, apicall.Request{Op: "register", Method: http.MethodPost, Path: c.path, Body: body, Limit: registerAnswer,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}})
	if err != nil {
		return archive.RegisterResult{}, explainRefusal(apicall.BlameRequest(err, http.StatusBadRequest, http.StatusUnprocessableEntity), body)
	}
	defer ans.Release()
	link, fields, err := readGrant(ans.Body)
	if err != nil {
		return archive.RegisterResult{}, ans.Unreadable("register", err)
	}
	ticket, err := c.store.ReadTicket(archive.Ticket{Sent: before, Date: ans.Date()}, link, fields)
	switch {
	case err != nil:
		return archive.RegisterResult{Barred: map[archive.ID]string{id: fmt.Sprintf("%v (request id %s)", err, ans.RequestID)}}, nil
	case ticket.URL == "":
		return archive.RegisterResult{}, ans.Unreadable("register", errors.New("the answer gives no upload address"))
	}
	ticket.Remote = remoteOf(fields, ticket.URL)
	return archive.RegisterResult{Tickets: map[archive.ID]archive.Ticket{id: limitLife(ticket)}}, nil
}

// limitLife returns the ticket with the life that it is used for.
func limitLife(t archive.Ticket) archive.Ticket {
	if t.Validity <= 0 {
		return t.LimitLife(untoldLife)
	}
	return t.LimitLife(longestLife)
}

// addressFields are the names under which an answer may give the upload address. The specification shows none.
var addressFields = []string{"uploadUrl", "uploadURL", "url"}

// readGrant returns the upload address of an answer, as a string or as an object that has it, and the fields beside it. The
// answer is an object, perhaps alone in an array, or the address alone.
func readGrant(body []byte) (link json.RawMessage, fields apicall.Fields, err error) {
	if address, object := apicall.ReadLink(body); address != "" && object == nil {
		return body, nil, nil
	}
	list, err := apicall.ReadRecords(body)
	if err != nil {
		return nil, nil, err
	}
	if len(list) != 1 {
		return nil, nil, fmt.Errorf("the answer to one registration holds %d", len(list))
	}
	names := append([]string{"bumId", "bumid", "headers", "fields"}, addressFields...)
	if fields, err = apicall.ReadFields(list[0], names...); err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	// Two addresses, or two numbers, do not say which one is meant.
	if _, err := fields.Either("bumId", "bumid"); err != nil {
		return nil, nil, err
	}
	link, err = fields.Either(addressFields...)
	return link, fields, err
}

// remoteOf returns the number of a registration: the service's bumId, or, where the answer has none that can be used, one that is
// made from the object that the upload address leads to: "address-" and 32 hexadecimal digits of the SHA-256 of its name, as
// [archive.PresignedURL.Object] gives it. That name has the host and the path, and nothing that grants access. So two addresses of
// one object have one number, whenever they were signed, and the ledger sees a mix-up by the number as well. The service does not
// know this number.
func remoteOf(fields apicall.Fields, address archive.PresignedURL) archive.RemoteID {
	for _, name := range []string{"bumId", "bumid"} {
		if r, err := archive.ParseRemoteID(fields.Text(name)); err == nil {
			return r
		}
	}
	sum := archive.Sum([]byte(address.Object()))
	return archive.RemoteID("address-" + hex.EncodeToString(sum[:16]))
}

// explainRefusal says of a refused registration which of the configured addresses the service does not accept, where it tells.
func explainRefusal(err error, body []byte) error {
	e := apicall.AsError(err)
	if e.Outcome != apicall.Refused {
		return e
	}
	field := fieldBlamed(e)
	if field == "" {
		return e
	}
	words := strings.TrimPrefix(e.Message, "body."+field+": ")
	e.Field = field
	e.Text = fmt.Sprintf("register: the service refuses %s %s: %s (%d, request id %s)", field, shortAddress(body, field), words, e.Status, e.RequestID)
	return e
}

// fieldBlamed returns which field of a registration a refusal is about; empty: it does not say, or speaks of both.
func fieldBlamed(e *apicall.Error) string {
	for _, where := range []string{e.Field, e.Message} {
		receiving, notification := strings.Contains(where, receivingField), strings.Contains(where, notificationField)
		switch {
		case receiving && !notification:
			return receivingField
		case notification && !receiving:
			return notificationField
		}
	}
	return ""
}

// shortAddress returns the value of a field in quotes, without the part behind the at sign: enough to recognise it in the
// configuration.
func shortAddress(body []byte, field string) string {
	fields, err := apicall.ReadFields(body, field)
	if err != nil {
		return `""`
	}
	local, _, isAddress := strings.Cut(fields.Text(field), "@")
	if r := []rune(local); len(r) > 64 {
		local = string(r[:64]) + "…"
	}
	if isAddress {
		local += "@…"
	}
	return fmt.Sprintf("%q", local)
}
