package extractapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// Acknowledge says to the service that an extract was taken. The service then hides the extract from later lists, also from those of
// other programs. message is for people at the service. It is called only for an extract that the service still lists, or that may
// be acknowledged already: that is a success.
//
// After an unknown outcome it may be called again: a second acknowledgement does no harm.
func (c *Client) Acknowledge(ctx context.Context, id archive.ExtractID, message string) error {
	first, second := plural, singular
	if c.singular.Load() {
		first, second = singular, plural
	}
	err := c.postAcknowledgement(ctx, first, id, message)
	if !isNotFound(err) {
		return err
	}
	// The extract is there, so this path is not. Nothing was done: the other form may leave within the same intent.
	other := c.postAcknowledgement(ctx, second, id, message)
	if isNotFound(other) {
		return err // neither path is there, so the extract is not
	}
	if other == nil {
		c.singular.Store(second == singular)
	}
	return other
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*apicall.Error](err)
	return ok && e.Status == http.StatusNotFound
}

func (c *Client) postAcknowledgement(ctx context.Context, path string, id archive.ExtractID, message string) error {
	const op = "acknowledge an extract"
	body, err := json.Marshal(struct {
		Succeeded bool   `json:"succeeded"`
		Message   string `json:"message"`
	}{true, message})
	if err != nil {
		return &apicall.Error{Outcome: apicall.NotSent, Code: "request", Text: op + ": " + err.Error(), Err: err}
	}
	// This is the POST. If the process dies in it, the extract may be acknowledged. All its files are held by then, so nothing is
	// lost; the next start finds the intent and acknowledges again.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Method: http.MethodPost, Path: []string{"v1", path, string(id), "acknowledge"}, Body: body, Limit: acknowledgeAnswer,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}})
	if err != nil {
		if e := apicall.AsError(err); e.Status == http.StatusMethodNotAllowed {
			return nil // it was acknowledged before
		}
		return err
	}
	defer ans.Release()
	return readAcknowledgement(op, ans)
}

// readAcknowledgement accepts every 2xx but one that says no, and a page of something that is not the service. The specification does
// not show the answer.
func readAcknowledgement(op string, ans *apicall.Answer) error {
	if len(ans.Body) == 0 {
		return nil
	}
	f, err := apicall.ReadFields(ans.Body, "succeeded", "message")
	switch {
	case err != nil && !json.Valid(ans.Body):
		return ans.Unreadable(op, apicall.ErrUnknownForm)
	case err == nil && f.Text("succeeded") == "false":
		return ans.Unreadable(op, errors.New("the service says that it did not succeed: "+sanitize.Message(f.Text("message"), 200)))
	}
	return nil
}
