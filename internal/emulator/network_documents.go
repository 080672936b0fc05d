package emulator

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
)

// observePost records the bytes of every document that reaches the service, whatever becomes of the call. A client cannot know what
// became of a call without an answer, so the bytes under one bumId must never change.
func observePost(kind string) func(*Server, *call) bool {
	return func(s *Server, c *call) bool {
		bumID := c.PathValue("bumId")
		body, tooLong, err := readBody(c.Request, s.cfg.Network.MaxDocument)
		rest := c.Body
		c.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
		if err != nil || tooLong || !bumIDPattern.MatchString(bumID) {
			return err == nil // nobody can be told what the client meant to send
		}
		sum := digest(body)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.record.BumIDs = []string{bumID}
		if before, posted := s.state.network.posted[bumID]; posted && (before.sha256 != sum || before.kind != kind) {
			s.recordViolationLocked(c, "other bytes posted under bumId %s", bumID)
		} else if d := s.state.network.documents[bumID]; d != nil && d.isReceived {
			s.recordViolationLocked(c, "other bytes posted under bumId %s, which is that of a received document", bumID)
		}
		s.checkListed(c, bumID, body)
		return s.commitLines(journalLine{Time: c.now, Kind: kindNetworkPosted, BumID: bumID, SHA256: sum, Network: &networkLine{DocumentKind: kind}}) == nil
	}
}

// sendDocument takes a document of a kind.
func sendDocument(kind string) handler {
	return func(s *Server, c *call) reply {
		bumID := c.PathValue("bumId")
		if !bumIDPattern.MatchString(bumID) {
			return c.refuseProblems([]networkProblem{{"Error.004.0003", "bumId", "the format of the bumId is invalid"}})
		}
		if t, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || t != "application/json" {
			return c.networkRefusal("Error.004.0004", "Content-Type must be application/json")
		}
		body, tooLong, err := readBody(c.Request, s.cfg.Network.MaxDocument)
		switch {
		case err != nil:
			return reply{} // the client went away in the middle: there is nobody to answer
		case tooLong:
			return c.networkRefusal("Error.004.0012", "the document is too large")
		case s.isBumIDInUse(bumID):
			return c.networkRefusal("Error.003.0038", "a document with this bumId exists already")
		}
		d, problems := parseSentDocument(body)
		if len(problems) == 0 && slices.Contains(s.cfg.Network.UnknownReceivers, d.receiver) {
			return c.networkRefusal("Error.001.0001", "the receiver does not exist in the network")
		}
		if len(problems) > 0 {
			return c.refuseProblems(problems)
		}
		// A kill before the document is recorded leaves bytes that belong to no document.
		if err := s.keepObject(digest(body), body); err != nil {
			return c.networkRefusal("Error.001.0006", "the document could not be stored")
		}
		return s.acceptDocument(c, kind, bumID, body, d)
	}
}

// isBumIDInUse reports whether a document has this number, of this client or of another one.
func (s *Server) isBumIDInUse(bumID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.network.isInUse(bumID)
}

// acceptDocument records a document with all that will ever be notified about it, and answers.
func (s *Server) acceptDocument(c *call, kind, bumID string, body []byte, d sentBody) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.network.isInUse(bumID) { // another call may have come first
		return c.networkRefusal("Error.003.0038", "a document with this bumId exists already")
	}
	for _, ref := range d.refs {
		f := s.state.network.files[ref]
		switch {
		case f == nil || f.isReceived:
			s.recordViolationLocked(c, "document %s refers to file %s, which was never stored", bumID, ref)
		case f.BumID != bumID:
			s.recordViolationLocked(c, "document %s refers to file %s, which was stored for %s", bumID, ref, f.BumID)
		default:
			continue
		}
		return c.refuseProblems([]networkProblem{{"Error.004.0002", "fileRefs", "a refId names no file of this document"}})
	}
	outcomes := d.outcomes
	if len(outcomes) == 0 {
		outcomes = s.drawOutcome()
	}
	l := networkLine{DocumentKind: kind, Refs: d.refs, DataSHA256: digest(d.data), Outcomes: outcomes,
		Notices: s.planNotices(bumID, kind, outcomes, c.now)}
	if n := uint64(len(l.Notices)); n > 0 && c.fault.VisibleAfter > 0 {
		l.Notices[s.rng.Uint64()%n].Late = c.fault.VisibleAfter
	}
	c.record.SHA256, c.record.Size = digest(body), int64(len(body))
	// A kill after this line and before the answer leaves a client that does not know: it sends the same bytes again.
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkSent, BumID: bumID, SHA256: digest(body), Network: &l}); err != nil {
		return reply{}
	}
	if c.reading.Network.SendAnswer == "json" {
		return reply{status: http.StatusCreated, header: jsonHeader(), body: encodeJSON(map[string]any{"version": "1.0", "bumId": bumID})}
	}
	return reply{status: http.StatusOK}
}

// fetchDocument answers with a document of a kind, sent or received.
func fetchDocument(kind string, v version) handler {
	return func(s *Server, c *call) reply {
		bumID := c.PathValue("bumId")
		if !bumIDPattern.MatchString(bumID) {
			return c.refuseProblems([]networkProblem{{"Error.004.0003", "bumId", "the format of the bumId is invalid"}})
		}
		c.record.BumIDs = []string{bumID}
		s.mu.Lock()
		defer s.mu.Unlock()
		d := s.state.network.documents[bumID]
		switch how := c.reading.Network.FetchSent; {
		case s.state.network.occupied[bumID] && how == "refused":
			return c.refusal(http.StatusForbidden, "AccessDenied", "User is not authorized to access this resource")
		case d == nil || d.kind != kind || !d.isReceived && how == "unknown" || d.isReceived && !c.reading.Network.knowsReceived(v):
			return c.networkRefusal("Error.003.0001", "no document with this bumId")
		case !d.isReceived && how == "refused":
			return c.refusal(http.StatusForbidden, "AccessDenied", "User is not authorized to access this resource")
		}
		data, err := s.dataOf(d)
		if err != nil {
			return c.networkRefusal("Error.001.0006", "the document could not be read")
		}
		if d.isReceived && c.fault.leavesAnswerWhole() && !d.wasSent {
			if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkFetched, BumID: bumID}); err != nil {
				return reply{}
			}
		}
		return jsonReply(s.documentAnswer(c, d, data))
	}
}

// dataOf reads the business content of a document.
func (s *Server) dataOf(d *networkDocument) (json.RawMessage, error) {
	raw, err := os.ReadFile(s.objectPath(d.sha256))
	if err != nil || d.isReceived {
		return raw, err
	}
	var body map[string]json.RawMessage
	err = json.Unmarshal(raw, &body)
	return body["data"], err
}

// documentAnswer is a document as GET tells it. The first version of the interface has neither the number nor the origin.
func (s *Server) documentAnswer(c *call, d *networkDocument, data json.RawMessage) map[string]any {
	refs, links := []any{}, []any{}
	for _, f := range d.files {
		ref := map[string]any{"refId": f.ID, "fileType": f.FileType}
		if c.reading.Network.FileHeaders == "fileref" {
			ref["fileName"] = f.Name
		}
		refs = append(refs, ref)
		links = append(links, map[string]any{"rel": "file", "href": c.linkBase() + "/v2/files/" + f.ID, "method": "GET"})
	}
	answer := map[string]any{"fileRefs": refs, "links": links, "data": data}
	if c.URL.Path == s.cfg.documentPath(d.kind)+"/"+d.bumID {
		answer["bumId"], answer["origin"] = d.bumID, d.origin
	}
	return answer
}
