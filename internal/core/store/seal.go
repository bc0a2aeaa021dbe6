package store

// Sign signs the head of the audit chain; it may be called from any goroutine.
type Sign func(head []byte) (signature []byte, err error)
