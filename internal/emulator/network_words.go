package emulator

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// confirmation is the pair of codes that a client may post by itself, and twice. All others that it may post are words of a person.
const confirmation = "TechnicalAccept DeliveryConfirmed"

// observeWord records every word about a received document that reaches the service, whatever becomes of the call. A client cannot know what
// became of a call without an answer, and a second word is a second one to whoever sent the document: only a person may say it.
func observeWord(s *Server, c *call) bool {
	body, tooLong, err := readBody(c.Request, maxSlotBody)
	rest := c.Body
	c.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
	var have map[string]json.RawMessage
	if err != nil || tooLong || json.Unmarshal(body, &have) != nil {
		return err == nil // nobody can be told what the client meant to say
	}
	n, problem := parsePostedNotice(have)
	word := n.ResponseCode + " " + n.ActionCode
	if problem != nil || word == confirmation {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.state.network; len(m.words[n.BumID]) > m.permittedWords[n.BumID] {
		s.recordViolationLocked(c, "%q was said about document %s after %q, and no person decided so", word, n.BumID, strings.Join(m.words[n.BumID], ", "))
	}
	return s.commitLines(journalLine{Time: c.now, Kind: kindNetworkWord, BumID: n.BumID, Network: &networkLine{Word: word}}) == nil
}

// PermitWord says that a person decided to say one more word about a received document than the first one. It is remembered after a restart.
func (s *Server) PermitWord(bumID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindNetworkWordPermitted, BumID: strings.ToLower(bumID)})
}
