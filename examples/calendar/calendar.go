package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"chancery/agentcert"
	"chancery/capability"
)

const (
	maxEvents = 1000
	maxBody   = 4 << 10
)

// An event says what was planned, by which agent, and for whom.
type event struct {
	Title string `json:"title"`
	Agent string `json:"agent"`
	For   string `json:"for"`
}

// A calendar holds events in memory.
type calendar struct {
	mu     sync.Mutex
	events []event
}

// newCalendar puts every operation of a new calendar behind the verifier.
func newCalendar(verifier *agentcert.Verifier) http.Handler {
	c := new(calendar)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", c.list)
	mux.HandleFunc("POST /events", c.add)
	return verifier.Middleware(operation)(mux)
}

// operation names what a request does, in the words of the capability language.
func operation(r *http.Request) (capability.Operation, error) {
	switch r.Method + " " + r.URL.Path {
	case "GET /events":
		return capability.Operation{Name: "calendar:read:events", ReadOnly: true}, nil
	case "POST /events":
		return capability.Operation{Name: "calendar:write:events"}, nil
	}
	return capability.Operation{}, fmt.Errorf("the calendar has no operation %s %s", r.Method, r.URL.Path)
}

func (c *calendar) list(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	events := append([]event{}, c.events...)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(events)
}

func (c *calendar) add(w http.ResponseWriter, r *http.Request) {
	var e event
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&e); err != nil || e.Title == "" {
		http.Error(w, `an event needs a title, as in {"title":"Dentist"}`, http.StatusBadRequest)
		return
	}
	decision, _ := agentcert.DecisionFrom(r.Context())
	e.Agent, e.For = decision.AgentID, decision.Principal.Identifier
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) >= maxEvents {
		http.Error(w, "the calendar is full", http.StatusInsufficientStorage)
		return
	}
	c.events = append(c.events, e)
	w.WriteHeader(http.StatusCreated)
}
