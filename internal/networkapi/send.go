package networkapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// SendDocument sends a document under its number in one POST. The body is what [ComposeBody] made, byte for byte. Every 2xx is a
// success, save one whose body is a web page or an error: that came from something else than the network, or says two things.
//
// Its error is an *apicall.Error. Refused: the network does not take this document; see [AlreadyExists]. NotProcessed: credentials,
// rights, the path. OutcomeUnknown: the document may be there. Then the same bytes under the same number are sent again.
func (c *Client) SendDocument(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID, body []byte) error {
	const op = "send a document"
	path, err := c.documentPath(kind, id)
	switch {
	case err != nil:
		return requestError(op, err.Error())
	case !id.IsBumID():
		return requestError(op, "the number of the document is not one that the network takes")
	case len(body) == 0:
		return requestError(op, "the document has no body")
	}
	// This is the POST. If the process dies in it, the network may have the document. The entry is committed as sending before, with
	// these bytes. The next start sends them again under this number, and the network tells whether it knows the number.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Method: http.MethodPost, Path: path, Body: body, Limit: smallAnswer, Header: sendJSON})
	if err != nil {
		return judgeSending(err, aboutDocument)
	}
	defer ans.Release()
	return checkAccepted(op, ans)
}

// checkAccepted returns an error where a 2xx without a specified body is no success.
func checkAccepted(op string, ans *apicall.Answer) error {
	if ans.IsWebPage() {
		return ans.Unreadable(op, apicall.ErrUnknownForm) // which names the proxy
	}
	if bytes.HasPrefix(bytes.TrimSpace(ans.Body), []byte("<")) { // XML, as object stores and gateways tell an error
		return ans.Unreadable(op, errors.New("the answer is a success with a document that is not the network's"))
	}
	f, err := apicall.ReadFields(ans.Body, "error", "errors")
	if err != nil {
		return nil // no object: an empty body, or a text
	}
	for _, told := range f {
		if s := string(told); s != "null" && s != "[]" && s != "{}" && s != `""` && s != "false" {
			return ans.Unreadable(op, errors.New("the answer is a success that holds an error"))
		}
	}
	return nil
}
