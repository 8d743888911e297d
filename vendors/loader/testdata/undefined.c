int nobody_defines_this(void);
int fixture_call(void) { return nobody_defines_this(); }
