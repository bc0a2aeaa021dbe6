package api

import "time"

// A SetupRequest makes the first administrator with the one-time setup code.
type SetupRequest struct {
	Code string `json:"code" maxLength:"128"`
	Name string `json:"name" maxLength:"64"`
}

// A NewAccount makes a person or a service account.
type NewAccount struct {
	Kind        string   `json:"kind" enum:"person,service"`
	Name        string   `json:"name" maxLength:"64" doc:"login name; unique and lasting"`
	Display     string   `json:"display,omitempty" maxLength:"128"`
	Roles       []string `json:"roles,omitempty" maxItems:"16"`
	Authorities []string `json:"authorities,omitempty" maxItems:"64" doc:"authorities that the account may use"`
}

// An AccountChange changes what is given and leaves the rest.
type AccountChange struct {
	Display     *string   `json:"display,omitempty" maxLength:"128"`
	Roles       *[]string `json:"roles,omitempty" maxItems:"16"`
	Authorities *[]string `json:"authorities,omitempty" maxItems:"64"`
	Enabled     *bool     `json:"enabled,omitempty"`
}

// An Account is a person or a service account.
type Account struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind" enum:"person,service"`
	Name        string    `json:"name"`
	Display     string    `json:"display,omitempty"`
	Roles       []string  `json:"roles"`
	Authorities []string  `json:"authorities,omitempty"`
	Enabled     bool      `json:"enabled"`
	CreatedAt   time.Time `json:"created_at"`
}

// A NewToken asks for an API token.
type NewToken struct {
	Account     string    `json:"account,omitempty" maxLength:"64" doc:"default: the caller's own"`
	Note        string    `json:"note,omitempty" maxLength:"128"`
	Permissions []string  `json:"permissions,omitempty" maxItems:"64" doc:"narrows what the account may do; absent for all of it"`
	Until       time.Time `json:"until,omitzero" doc:"default: in 90 days"`
}

// A Token is an API token; Secret is there only in the answer that made it.
type Token struct {
	ID          string    `json:"id"`
	Account     string    `json:"account"`
	Note        string    `json:"note,omitempty"`
	Permissions []string  `json:"permissions,omitempty"`
	Secret      string    `json:"secret,omitempty"`
	Until       time.Time `json:"until"`
	CreatedAt   time.Time `json:"created_at"`
}

// A Binding lets the holder of a certified key call as an account.
type Binding struct {
	Account string `json:"account" maxLength:"64"`
	KeyHash string `json:"key_hash" maxLength:"64" doc:"SHA-256 of the SubjectPublicKeyInfo, hexadecimal"`
	Note    string `json:"note,omitempty" maxLength:"128"`
}

// A Caller is who the server takes the caller for.
type Caller struct {
	Kind        string   `json:"kind"`
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name,omitempty"`
	Permissions []string `json:"permissions"`
	Authorities []string `json:"authorities,omitempty"`
}

// An AuditLine is one recorded change.
type AuditLine struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor,omitempty"`
	Action string    `json:"action"`
	Target string    `json:"target,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// A Health is the state of the program in detail.
type Health struct {
	Status   string          `json:"status" enum:"ok,degraded"`
	Version  string          `json:"version"`
	Waiting  int             `json:"waiting" doc:"writes that wait for their commit"`
	Epoch    int64           `json:"epoch" doc:"how often this store was restored from a backup"`
	Settings []HealthSetting `json:"durability"`
	Notes    []string        `json:"notes,omitempty"`
}

// A HealthSetting is a durability setting of the database.
type HealthSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Safe  bool   `json:"safe"`
}

// A Refusal is a recent request that was refused, as the caller was told.
type Refusal struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	Route     string    `json:"route,omitempty" doc:"method and path pattern; absent where there was none"`
	Status    int       `json:"status"`
	Code      string    `json:"code,omitempty" doc:"absent for a failure of the server's own"`
	Text      string    `json:"text"`
	Hint      string    `json:"hint,omitempty"`
}
