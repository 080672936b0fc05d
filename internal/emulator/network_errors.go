package emulator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// networkErrors are the errors of the business network: their type, and the status that they are answered with. The specification names
// the types; the statuses are the usual ones.
var networkErrors = map[string]struct {
	kind   string
	status int
}{
	"Error.001.0001": {"BUSINESS", http.StatusBadRequest},
	"Error.001.0006": {"TECHNICAL", http.StatusInternalServerError},
	"Error.001.0010": {"TECHNICAL", http.StatusInternalServerError},
	"Error.001.0012": {"BUSINESS", http.StatusForbidden},
	"Error.002.0004": {"SECURITY", http.StatusBadRequest},
	"Error.003.0001": {"VALIDATION", http.StatusNotFound},
	"Error.003.0020": {"VALIDATION", http.StatusBadRequest},
	"Error.003.0032": {"TECHNICAL", http.StatusInternalServerError},
	"Error.003.0038": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0002": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0003": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0004": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0005": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0012": {"VALIDATION", http.StatusRequestEntityTooLarge},
	"Error.004.0013": {"VALIDATION", http.StatusBadRequest},
	"Error.004.0014": {"VALIDATION", http.StatusBadRequest},
}

// technicalCodes are the errors after which a call may be repeated.
var technicalCodes = []string{"Error.001.0006", "Error.001.0010", "Error.003.0032"}

// networkProblem is one thing that is wrong with a document: the code of its error, the field, and words that repeat nothing of the value.
type networkProblem struct{ code, field, message string }

// networkRefusal is an error answer of the network. If it has several problems,
// the first gives the code.
func (c *call) networkRefusal(code, message string, problems ...networkProblem) reply {
	e := networkErrors[code]
	c.record.Text = code + ": " + message
	// The id depends on the call alone, so that a journal can be searched for it.
	id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d %s %s", c.record.Op, c.record.N, c.record.RequestID, code))
	item := map[string]any{"id": id.String(), "type": e.kind, "code": code, "message": message,
		"info": "Give the error id and the code to the support."}
	rep := reply{status: e.status, header: jsonHeader()}
	if c.reading.Network.ErrorWrapper == "error" {
		rep.body = encodeJSON(map[string]any{"error": item})
		return rep
	}
	fields := []any{}
	for _, p := range problems {
		fields = append(fields, map[string]any{"fieldId": p.field, "fieldMessage": p.message})
	}
	item["validationErrors"] = fields
	rep.body = encodeJSON(map[string]any{"version": "1.0", "errors": item})
	return rep
}

// refuseProblems is the error answer to a body with problems.
func (c *call) refuseProblems(problems []networkProblem) reply {
	first := problems[0]
	message := first.message
	if first.field != "" {
		message = first.field + ": " + message
	}
	return c.networkRefusal(first.code, message, problems...)
}

// codedReply is the error answer of the kind Coded. Without a code in the fault, it is one after which a call may be repeated.
func (s *Server) codedReply(c *call) reply {
	code := c.fault.Code
	if code == "" {
		s.mu.Lock()
		code = technicalCodes[s.rng.Uint64()%uint64(len(technicalCodes))]
		s.mu.Unlock()
	}
	rep := c.networkRefusal(code, "the call could not be carried out")
	if c.fault.Status != 0 {
		rep.status = c.fault.Status
	}
	return rep
}

// networkCodes returns the codes of the errors of the network.
func networkCodes() []string { return slices.Sorted(maps.Keys(networkErrors)) }
