def runtime_config_update(config):
    config.tag += "-updated"
