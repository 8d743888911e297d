def forward_step():
    return 2.0
