int fixture_shared(void);
int fixture_user(void) { return fixture_shared() + 1; }
