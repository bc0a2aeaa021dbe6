package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"chancery/api"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/server"
)

func TestOddLifetimesAreRefusedOrCut(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	v := o.holder(t, account.Spec{Kind: who.Service, Name: "desk", Roles: []account.Role{account.Issuer}, Authorities: []string{server.Machines}})
	order := api.IssueRequest{Authority: server.Machines, Profile: "tls-server", Request: inPEM("CERTIFICATE REQUEST", o.request(t, newKey(t))), Names: []string{"a.example.org"}}
	order.LifetimeSec = -1
	v.call(t, "POST", "/api/v1/certificates", order).want(t, "below zero", 400, "lifetime_invalid")
	order.LifetimeSec = 18446744074 // nanoseconds past the range of int64
	r := v.call(t, "POST", "/api/v1/certificates", order)
	r.want(t, "past all bounds", 201, "")
	var issued api.Issued
	if err := json.Unmarshal(r.body, &issued); err != nil || time.Until(issued.NotAfter) < 24*time.Hour {
		t.Errorf("past all bounds: until %v (%v)", issued.NotAfter, err)
	}
}
